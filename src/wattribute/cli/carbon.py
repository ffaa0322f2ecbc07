"""``wattribute carbon``: the emissions of a recording, for any zone and source."""

from __future__ import annotations

import json
from argparse import Namespace

from .arguments import Parser, add_carbon, add_format, add_hardware, add_reading, reading_from

EXAMPLES = (
    "wattribute carbon run.watt --zone FR",
    "wattribute carbon run.watt --intensity 50 --pue 1.2 --price 0.25",
    "wattribute carbon run.watt --zone FR --market 0",
)


def add_arguments(parser: Parser) -> None:
    parser.group("Arguments").add_argument("path", metavar="PATH", help="Trace, recording or profile.")
    add_carbon(parser, "Zone where it ran: a code or name of `wattribute zones`.")
    what = parser.group("What")
    what.add_argument("--per", metavar="UNIT", help="Also per unit of work that the program counted.")
    what.add_argument(
        "--sci", action="store_true", help="Software Carbon Intensity (ISO/IEC 21031): (E x I + M) / R, R from --per."
    )
    what.add_argument(
        "--market",
        metavar="G|FILE",
        help="Also market-based: g CO2e per kWh of your contract, or a table; beside, never mixed.",
    )
    what.add_argument("--price", type=float, metavar="P", help="Price of a kWh.")
    what.add_argument("--currency", default="", metavar="NAME", help="Currency of --price.")
    add_hardware(parser)
    what.add_argument(
        "--wue", dest="wue_l_per_kwh", type=float, metavar="L", help="Litres of water the site evaporates per kWh."
    )
    what.add_argument(
        "--grid-water",
        dest="grid_water_l_per_kwh",
        type=float,
        metavar="L",
        help="Litres evaporated per kWh to make electricity.",
    )
    parser.group("Which part").add_argument(
        "--start", metavar="T", help="When it started (ISO 8601), for a recording without a wall clock."
    )
    add_format(parser)
    add_reading(parser)


def run(arguments: Namespace) -> None:
    from dataclasses import fields

    from ..carbon import Site, check, emissions, sci
    from ..carbon.sci_factors import check_market
    from ..errors import OptionError
    from ..reading import read

    check(arguments.zone, arguments.intensity)
    if arguments.sci and arguments.per is None:
        raise OptionError("--sci is per unit of work: name what the program counted with --per UNIT")
    contract = None if arguments.market is None else check_market(arguments.market)
    site = Site(**{field.name: getattr(arguments, field.name) for field in fields(Site)})
    recording = read(arguments.path, **reading_from(arguments))
    how = {"site": site, "start": arguments.start}
    result = emissions(recording, zone=arguments.zone, intensity=arguments.intensity, **how)
    market = None if contract is None else emissions(recording, intensity=contract, **how)
    per_unit = None
    if arguments.per is not None:
        per_unit = sci(recording, arguments.per, zone=arguments.zone, intensity=arguments.intensity, **how)
    if arguments.format == "json":
        document = result.as_dict()
        document |= {} if per_unit is None else {"sci": per_unit.as_dict()}
        document |= {} if market is None else {"market": market.as_dict()}
        print(json.dumps(document, ensure_ascii=False, indent=1))
        return
    from ..views.console_carbon import emissions_table
    from ..views.terminal import Console

    Console().print(emissions_table(result, per_unit, market, arguments.sci))
