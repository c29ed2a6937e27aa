"""What is to be done once Keras has been imported, whoever imports it."""

import re
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Within the import of one of these, Keras or what the action needs may be half loaded:
# Keras and TensorFlow import each other, and the package's modules import both.
_WATCHED = re.compile(r"keras|tensorflow|keras_ortho\..*")


def after_keras(action: Callable[[], None]) -> None:
    """Does something as soon as Keras is loaded, which may be now.

    Keras need not be installed. An error of the action is one of the import that
    brought Keras.

    Args:
        action: What to do, once.

    Example:
    >>> after_keras(lambda: print(keras.backend.backend()))
    """
    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watcher(action))


class _Watcher:
    """Finds what the finders after it find, and acts when the last import is done."""

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.keras_is_loaded = False
        # Of all threads: to act within an import that another waits for is a deadlock.
        self.imports_under_way = 0
        self.lock = threading.Lock()

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """As the import system asks for it."""
        finders = list(sys.meta_path)  # Another thread may take this one out.
        if not _WATCHED.fullmatch(name) or self not in finders:
            return None
        later = finders[finders.index(self) + 1 :]
        specs = (finder.find_spec(name, path, target) for finder in later)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._watch(spec.loader)
        return spec

    def _watch(self, loader: object) -> None:
        execute = loader.exec_module  # type: ignore[attr-defined]

        def exec_module(module: ModuleType) -> None:
            with self.lock:
                self.imports_under_way += 1
            try:
                execute(module)
            finally:
                with self.lock:
                    self.imports_under_way -= 1
            self._act_after(module.__name__)

        loader.exec_module = exec_module  # type: ignore[attr-defined]

    def _act_after(self, name: str) -> None:
        with self.lock:
            self.keras_is_loaded |= name == "keras"
            due = self.keras_is_loaded and not self.imports_under_way
            if not due or self not in sys.meta_path:
                return
            sys.meta_path.remove(self)
        self.action()
