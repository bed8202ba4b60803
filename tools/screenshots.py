"""Pictures of the report for docs/: light, dark and on a phone, from the demo's lake.

make demo && python -m tools.screenshots out/report.html
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image

from tests.report.chromium import DESK, PHONE, chromium, missing

DOCS = Path(__file__).parent.parent / "docs"
# Name, width, dark.
SHOTS = (
    ("report-light", DESK, False),
    ("report-dark", DESK, True),
    ("report-phone", PHONE, False),
)
# As far down as this goes.
_LAST = "return Math.ceil(document.getElementById('troubles').getBoundingClientRect().bottom) + 16"
LARGEST = 300_000


def main(page: Path) -> None:
    absent = missing()
    if absent is not None:
        sys.exit(f"{absent}: install chromium and chromium-driver")
    with chromium() as browser:
        for name, width, dark in SHOTS:
            browser.open(page, width=width, dark=dark)
            png = packed(browser.screenshot(width=width, height=browser.run(_LAST)))
            if len(png) > LARGEST:
                sys.exit(f"{name}: {len(png):,} bytes are too many for docs/")
            (DOCS / f"{name}.png").write_bytes(png)
            print(f"docs/{name}.png: {len(png):,} bytes")


def packed(png: bytes) -> bytes:
    """The same picture in 256 colours, which is what a page of text and bars needs."""
    out = io.BytesIO()
    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
