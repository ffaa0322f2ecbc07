"""``make_recipes.py SDIST``: writes version and sha256 of a source archive into the recipes of packaging/."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

PACKAGING = Path(__file__).parent.parent / "packaging"
CONDA, SPACK = PACKAGING / "conda-forge" / "recipe.yaml", PACKAGING / "spack" / "package.py"


def filled(text: str, version: str, sha256: str) -> str:
    """A recipe with this version and checksum."""
    text = re.sub(r'(sha256[:=] ?)"\w{64}"', rf'\g<1>"{sha256}"', text)
    text = re.sub(r'^(  version: )"[^"]+"', rf'\g<1>"{version}"', text, flags=re.MULTILINE)
    text = re.sub(r'version\("[^"]+"', f'version("{version}"', text)
    return re.sub(r"wattribute/wattribute-[\d.]+\.tar", f"wattribute/wattribute-{version}.tar", text)


def main(sdist: Path) -> None:
    version = sdist.name.removeprefix("wattribute-").removesuffix(".tar.gz")
    sha256 = hashlib.sha256(sdist.read_bytes()).hexdigest()
    for recipe in (CONDA, SPACK):
        recipe.write_text(filled(recipe.read_text(encoding="utf-8"), version, sha256), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
