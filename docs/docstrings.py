"""Teaches griffe, which reads docstrings for the API pages, the sections of Keras's docstring style."""

import itertools
import re
import textwrap

import griffe

TEXT = "Input shape|Output shape|Returns|Yields"  # sections of one paragraph


class KerasSections(griffe.Extension):
    """Rewrites docstrings before they are parsed, and lists the fields of dataclasses and named tuples."""

    def on_object(self, *, obj, **_):
        if obj.docstring:
            obj.docstring.value = rewritten(obj.docstring.value)

    def on_class_members(self, *, cls, **_):
        if cls.docstring and cls.attributes and "__init__" not in cls.members:
            cls.docstring.value += "\n\n**Attributes:**\n\n" + "\n".join(fields(cls))


def rewritten(text):
    """Returns a docstring with only Google's sections, and with its arXiv numbers as links."""
    text = re.sub(r"\b(Call|Keyword) arguments:\n", r"Other arguments: \1 arguments:\n", text)
    text = re.sub(rf"^({TEXT}):\n((?:(?:    .*)?\n)+)", _paragraph, text + "\n", flags=re.MULTILINE)
    text = re.sub(r"^Example:\n\n((?:.+\n)+)", _indented, text, flags=re.MULTILINE)
    return re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", text)


def fields(cls):
    """Yields one line per field of a dataclass or named tuple: its comment in the source, and its default.

    Fields of its base classes are among them, but not what these keep for the class: those stand in other files.
    """
    for field in cls.attributes.values():
        inherited = field.filepath != cls.filepath or not cls.lineno <= field.lineno <= cls.endlineno
        if not field.annotation or (inherited and str(field.annotation).startswith("ClassVar")):  # a property has none
            continue
        line, *after = field.lines_collection[field.filepath][field.lineno - 1 :]
        more = itertools.takewhile(lambda line: line.strip().startswith("#"), after)
        words = [line.partition("#")[2].strip() for line in (line, *more)]
        notes = [" ".join(words)] * bool(words[0])
        if field.value:
            default = re.sub(r"^number\((.+?)[,)].*", r"\1", str(field.value))  # of config/checked.py, with its range
            notes.append(f"`{default}` by default")
        yield f"- `{field.name}` (`{field.annotation}`){': ' * bool(notes)}{'; '.join(notes)}"


def _paragraph(match):
    return f"**{match[1]}:** {textwrap.dedent(match[2])}\n"


def _indented(match):
    return "Examples: Example:\n" + textwrap.indent(match[1], "    ")
