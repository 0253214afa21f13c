"""What each publisher calls things: tables of names, and how a configuration is read."""
