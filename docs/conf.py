"""Settings of the documentation site, which `make docs` builds.

Its source is the whole checkout: the pages are read where they stand, so that their
links lead to the same places on a code host and on the site. What it makes asks no
other host for anything.
"""

import inspect
import re
from textwrap import indent
from typing import Any

from docutils.nodes import SkipNode, math_block
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import download_reference
from sphinx.writers.html5 import HTML5Translator

import keras_ortho

project = "keras_ortho"
version = release = keras_ortho.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
root_doc = "docs/index"
include_patterns = ["*.md", "data_prep/README.md", "docs/**"]
# The README is the front page of the checkout, `docs/index.md` that of the site.
exclude_patterns = [".*", "README.md", "build", "dist", "keras_ortho", "out"]
templates_path = ["templates"]

html_theme = "furo"
html_title = f"keras_ortho {release}"
# A page at the root, from which a browser goes on to the first one.
html_additional_pages = {"index": "first.html"}
html_copy_source = False
html_show_copyright = False
html_domain_indices = False
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["pages.css"]

# Anchors as a code host makes them, and equations in blocks as it reads them.
myst_heading_anchors = 6
myst_fence_as_directive = ["math"]

# Notebooks are run when they, but not when the package, have changed since the last
# time in the same folder. What a library writes to its log is no part of them.
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_output_stderr = "remove"
nb_merge_streams = True
nb_ipywidgets_js = {}

default_role = "literal"
autodoc_member_order = "bysource"
napoleon_use_ivar = True
# What a colon in these sections follows is no type, but the start of a sentence.
napoleon_custom_sections = ["Input shape", "Output shape", "Returns", "Weights"]
napoleon_custom_sections += ["Yields", ("Call arguments", "params_style")]

# Docstrings are reStructuredText, but for these, which are as Keras has them.
LINK = re.compile(r"\[([^]\[]+)\]\((https?://[^)]+)\)")
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(Example|Reference):\n+", re.MULTILINE)
BACK = re.compile(r'<a class="viewcode-back".*?</a>')
NAME = re.compile(r"(?<![`:])`(keras_ortho\.[\w.]+)`(?!`)")


def to_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list) -> None:
    """Makes links, blocks of code and unindented sections those of reStructuredText."""
    if what == "data":  # Its docstring is that of its class, such as `int`.
        lines.clear()
    text = LINK.sub(r"`\1 <\2>`__", "\n".join(lines))
    text = NAME.sub(r":py:obj:`\1`", text)
    text = HEADING.sub(r".. rubric:: \1\n\n", text)
    text = FENCE.sub(
        lambda m: ".. code-block:: python\n\n" + indent(m[1], "    "), text
    )
    lines[:] = text.split("\n")


def of_layer(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, result: Any
) -> tuple[str, None] | None:
    """Gives the arguments of a layer, where Keras's `__new__` hides them."""
    if what != "class" or signature != "(*args, **kwargs)":
        return None
    arguments = inspect.signature(obj.__init__)
    shown = list(arguments.parameters.values())[1:]
    return str(
        arguments.replace(parameters=shown, return_annotation=inspect.Signature.empty)
    ), None


def without_links_back(
    app: Any, page: str, template: str, context: dict, doctree: Any
) -> None:
    """Takes the links back to the reference from the pages of the source.

    Sphinx makes them as if all of a file were named by the same package, and several
    files hold parametrizations and initializers.
    """
    if page.startswith("_modules/"):
        context["body"] = BACK.sub("", context["body"])


def mathml(translator: Any, node: Any) -> None:
    """Writes an equation as MathML, which browsers draw without a script."""
    block = isinstance(node, math_block)
    equation = tex2mathml(node.astext(), as_block=block)
    body = f'<div class="equation">{equation}</div>' if block else equation
    translator.body.append(body)
    raise SkipNode


def player(translator: Any, node: Any) -> None:
    """Puts a player before the link to a sound."""
    if node.get("filename", "").endswith(".wav"):
        source = f"{translator.builder.dlpath}/{node['filename']}"
        translator.body.append(
            f'<audio controls preload="metadata" src="{source}"></audio>'
        )
    HTML5Translator.visit_download_reference(translator, node)


def setup(app: Any) -> None:
    """Connects the above."""
    download = (player, HTML5Translator.depart_download_reference)
    app.add_node(download_reference, override=True, html=download)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
    app.connect("autodoc-process-docstring", to_rst, priority=100)
    app.connect("autodoc-process-signature", of_layer)
    app.connect("html-page-context", without_links_back)
