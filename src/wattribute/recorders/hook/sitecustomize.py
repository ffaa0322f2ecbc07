# Read by every Python that a profiled program starts: PYTHONPATH names this folder (see recorders/stacks.py).
# It leaves no trace in sys.path, lets the machine's own sitecustomize run, and then starts the recorder. It has to be
# valid in any Python, old ones too, and must never stop the program.
import os
import sys


def _leave():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path_importer_cache.pop(here, None)
    mine = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401  (another one, if there is any)
    except ImportError:
        sys.modules["sitecustomize"] = mine  # the import that is under way looks for it
    return here


def _start(here):
    if sys.version_info < (3, 10) or not os.environ.get("WATTRIBUTE_STACKS"):
        return
    try:
        if "wattribute" not in sys.modules:  # by its path: the program's Python may have no wattribute installed
            import _frozen_importlib as machinery  # what importlib.util shows, without its imports
            import _frozen_importlib_external as files

            package = os.path.dirname(os.path.dirname(here))
            spec = files.spec_from_file_location(
                "wattribute", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
            )
            sys.modules["wattribute"] = module = machinery.module_from_spec(spec)
            spec.loader.exec_module(module)
        from wattribute.recorders import stacks

        stacks.join()
    except Exception as error:
        sys.stderr.write("wattribute: this process is not profiled: %r\n" % (error,))  # noqa: UP031


_start(_leave())
