"""Writes types.parquet, types-v1.parquet and types.json beside it: a column of each type that pyarrow writes, and the texts
that its values mean. Needs `pip install pyarrow==26.0.1 numpy`.

types.json has for each file and column the values as texts, null where the column is to be refused. types-v1 has the legacy
annotations that version 1.0 of the format knows, and timestamps of 96 bits. Types that pyarrow does not write (ENUM, BSON, INTERVAL,
the geographic ones, annotations without a logical type) are made by the test, which exchanges the annotation of a column.
"""

import datetime
import decimal
import json
import pathlib
import uuid

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent


def dec(text):
    return decimal.Decimal(text)


NUMBERS = {
    "int8": (pa.int8(), [-128, 0, 127]),
    "int16": (pa.int16(), [-32768, 0, 32767]),
    "int32": (pa.int32(), [-(2**31), -5, 2**31 - 1]),
    "int64": (pa.int64(), [-(2**63), 7, 2**63 - 1]),
    "uint8": (pa.uint8(), [0, 200, 255]),
    "uint16": (pa.uint16(), [0, 40000, 65535]),
    "uint32": (pa.uint32(), [0, 3000000000, 2**32 - 1]),
    "uint64": (pa.uint64(), [0, 2**63, 2**64 - 1]),
    "decimal32": (pa.decimal128(9, 2), [dec("12.50"), dec("-0.05"), dec("1234567.00")]),
    "decimal64": (pa.decimal128(18, 3), [dec("12.500"), dec("-0.005"), dec("123456789012345.678")]),
    "decimal_whole": (pa.decimal128(9, 0), [dec("12"), dec("-5"), dec("0")]),
    "decimal128": (pa.decimal128(38, 10), [dec("1.0000000001"), dec("-1234567890123456789012345678.0000000001"), dec("0E-10")]),
    "decimal256": (pa.decimal256(76, 30), [dec("1e-30"), dec("-1." + "0" * 29 + "1"), dec("9" * 46 + "." + "9" * 30)]),
    "bool": (pa.bool_(), [True, False, True]),
}
FLOATS = {
    "float16": (pa.float16(), [0.1, -2.5, 65504.0]),
    "float32": (pa.float32(), [0.1, -123456792.0, 3.0]),
    "float64": (pa.float64(), [0.1, -3.0, 1e21]),
}
# The shortest decimal that is read back as the same value of that width; a whole number has all its digits.
FLOAT_TEXTS = {"float16": ["0.1", "-2.5", "65504"], "float32": ["0.1", "-123456792", "3"], "float64": ["0.1", "-3", "1e+21"]}
TEXTS = {
    "string": (pa.string(), ["1,080", "é", "$5"]),
    "large_string": (pa.large_string(), ["1,080", "é", "$5"]),
    "string_view": (pa.string_view(), ["1,080", "é", "$5"]),
    "categories": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"]),
    "binary": (pa.binary(), [b"1,080", "é".encode(), b"$5"]),
}
JSONS = ['"1,080"', "-12.50", '"\\u00e9"']
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
REFUSED = {
    "date32": (pa.date32(), [NOW.date()] * 3),
    "time32": (pa.time32("ms"), [NOW.time()] * 3),
    "time64_us": (pa.time64("us"), [NOW.time()] * 3),
    "time64_ns": (pa.time64("ns"), [NOW.time()] * 3),
    "timestamp_ms": (pa.timestamp("ms"), [NOW] * 3),
    "timestamp_us": (pa.timestamp("us"), [NOW] * 3),
    "timestamp_ns": (pa.timestamp("ns"), [NOW] * 3),
    "timestamp_utc": (pa.timestamp("us", "UTC"), [NOW] * 3),
    "uuid": (pa.uuid(), [uuid.UUID(int=i).bytes for i in range(3)]),
    "fixed": (pa.binary(4), [b"1080"] * 3),
    "null": (pa.null(), [None] * 3),
    "list": (pa.list_(pa.int32()), [[1]] * 3),
    "struct": (pa.struct([("a", pa.int32())]), [{"a": 1}] * 3),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)]] * 3),
}
V1 = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "decimal32",
    "decimal64",
    "decimal128",
    "bool",
    "float32",
    "float64",
    "string",
    "binary",
    "date32",
    "time32",
    "time64_us",
    "timestamp_ms",
    "timestamp_us",
    "timestamp_ns",
    "fixed",
]


def columns(names=None):
    made, texts = {"question": pa.array(["a?", "b?", "c?"])}, {}
    for group in (NUMBERS, FLOATS, TEXTS, REFUSED):
        for name, (kind, values) in group.items():
            if names is not None and name not in names:
                continue
            if name == "uuid":
                made[name] = pa.ExtensionArray.from_storage(kind, pa.array(values, pa.binary(16)))
            elif name == "float16":
                made[name] = pa.array(numpy.array(values, numpy.float16))
            elif name == "categories":
                made[name] = pa.array(values).dictionary_encode()
            else:
                made[name] = pa.array(values, kind)
            if group is REFUSED:
                texts[name] = None
            elif group is FLOATS:
                texts[name] = FLOAT_TEXTS[name]
            elif group is TEXTS:
                texts[name] = [v.decode() if isinstance(v, bytes) else v for v in values]
            elif name.startswith("decimal"):
                texts[name] = [format(v, "f") for v in made[name].to_pylist()]
            else:
                texts[name] = [str(v).lower() for v in made[name].to_pylist()]
    if names is None:
        made["json"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array(JSONS))
        texts["json"] = ["1,080", "-12.50", "é"]
    return pa.table(made), texts


table, texts = columns()
pq.write_table(table, HERE / "types.parquet", store_decimal_as_integer=True, compression="zstd", write_statistics=False, store_schema=False)
old, old_texts = columns(V1)
pq.write_table(
    old,
    HERE / "types-v1.parquet",
    version="1.0",
    use_deprecated_int96_timestamps=True,
    data_page_version="1.0",
    compression="snappy",
    write_statistics=False,
    store_schema=False,
)
(HERE / "types.json").write_text(json.dumps({"types.parquet": texts, "types-v1.parquet": old_texts}, indent=1, ensure_ascii=False) + "\n")
for name in ("types.parquet", "types-v1.parquet"):
    print(pq.ParquetFile(HERE / name).schema)
