"""Reads a binary result of Sextant (docs/result-format.md) with the standard library alone."""

import json
import struct
import sys
import zlib
from array import array


def read_result(data: bytes) -> dict:
    """The SessionResult of the contract; token arrays are array("i"), array("f") and lists of 0 and 1."""
    magic, version, length = struct.unpack_from("<4sII", data)
    if magic != b"SXTR" or version != 1:
        raise ValueError(f"not a binary result of version 1: {magic!r}, {version}")
    top, at, columns = json.loads(zlib.decompress(data[12 : 12 + length])), 12 + length, []
    for column in top["columns"]:
        raw, count = zlib.decompress(data[at : at + column["bytes"]]), column["count"]
        at += column["bytes"]
        if column["type"] == "int32":
            like = column.get("like", {"of": [], "first": 0})
            earlier = array("i", b"".join(columns[one].tobytes() for one in like["of"]))
            columns.append(earlier[: like["first"]] + array("i", raw))
        elif column["type"] == "float32":
            joined = bytearray(len(raw))
            for k in range(4):
                joined[k::4] = raw[k * count : (k + 1) * count]
            columns.append(array("f", bytes(joined)))
        else:
            columns.append([raw[i >> 3] >> (i & 7) & 1 for i in range(count)])
    result, values = top["head"]["result"], top["head"]["values"]
    for trace in result["trajectory"]["traces"]:
        for key in ("prompt_ids", "response_ids", "loss_mask", "response_logprobs"):
            trace[key] = columns[trace[key]]
        for key in ("prompt_messages", "response_messages"):
            trace[key] = [values[i] for i in columns[trace[key]]]
        trace["tools"] = None if trace["tools"] is None else values[trace["tools"]]
        if isinstance(trace["metadata"].get("discarded_loss_mask"), int):
            trace["metadata"]["discarded_loss_mask"] = columns[trace["metadata"]["discarded_loss_mask"]]
    return result


if __name__ == "__main__":
    json.dump(read_result(open(sys.argv[1], "rb").read()), sys.stdout, default=list)
