"""Autoencoders of latents."""
