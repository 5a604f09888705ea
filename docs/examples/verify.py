"""Verifies proofs by docs/spec/proof.md alone; 0: valid, 1: not. It needs `cryptography` (Debian: python3-cryptography) and spec/members.json.
    python3 verify.py receipt --fingerprint HEX RECEIPT.json [JOURNAL.json]
    python3 verify.py export --key BASE64[,BASE64...] EXPORT.jsonl"""
import base64, decimal, hashlib, json, os, sys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
MEMBERS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../spec/members.json")))
KINDS = dict(attempts="record", prev_checkpoint="checkpoint", heads_url="keys", feedback_id="feedback"); sys.setrecursionlimit(4000)  # proofs are nested deep
def utf16(name): return name.encode("utf-16-be")
HASHED, ZEROS, PARTS = "seq kind stepId runId attempt at payload meta".split(), "0" * 64, (("record", ""), ("feedback", "feedback_"))
class Refused(Exception): pass
def refuse(reason): raise Refused(reason)
def number_text(value):  # as ECMAScript writes it
    if 1e-6 <= abs(value) < 1e21: return format(decimal.Decimal(repr(value)), "f").removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent or 0):+d}" if value else "0"
def number(text): return float(text) if number_text(float(text)) == text else refuse("number_form")
def members(pairs): return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("duplicate_member")
def read(data):  # strictly
    try: value = json.loads(data.decode(), object_pairs_hook=members, parse_int=number, parse_float=number, parse_constant=int)
    except (ValueError, RecursionError): refuse("not_json")
    try: json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError: refuse("lone_surrogate")
    return value
def fixed(value, known):  # no member at any level that the format does not have
    for name, member in value.items() if isinstance(value, dict) else ():
        inner = known.get(name) or refuse("unknown_member")
        for one in member if isinstance(inner, list) else [member] if isinstance(inner, dict) else []:
            fixed(one, inner[0] if isinstance(inner, list) else inner)
    return value
def canonical(value):  # RFC 8785
    if isinstance(value, dict): return "{" + ",".join(canonical(n) + ":" + canonical(value[n]) for n in sorted(value, key=utf16)) + "}"
    if isinstance(value, list): return "[" + ",".join(map(canonical, value)) + "]"
    return number_text(value) if type(value) in (int, float) else json.dumps(value, ensure_ascii=False)
def same(a, b): return canonical(a) == canonical(b)
def without(value, name): return {n: v for n, v in value.items() if n != name}
def sha256(*parts): return hashlib.sha256(b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)).hexdigest()
def unbase64(text, url=False):  # in its one spelling
    try: raw = base64.b64decode(text + "=" * (-len(text) % 4) if url else text, b"-_" if url else None, validate=True)
    except (ValueError, TypeError): return b""
    return raw if (base64.urlsafe_b64encode(raw).rstrip(b"=") if url else base64.b64encode(raw)).decode() == text else b""
def signed(key, signature, message):
    try: return Ed25519PublicKey.from_public_bytes(key).verify(signature, message.encode()) is None
    except (InvalidSignature, ValueError): return False
def receipt(fingerprint, data, journal=None):
    given = fixed(read(data), MEMBERS["receipt"])
    payload, key = given["payload"], unbase64(given.get("publicKey")) if given["algorithm"] == "Ed25519" else refuse("shape")
    if sha256(key) != fingerprint or payload.get("keyId") != fingerprint[:16]: refuse("unknown_key")
    if not signed(key, unbase64(given["signature"]), canonical(payload)): refuse("signature_invalid")
    if journal is None: return
    journal, run, count = fixed(read(journal), MEMBERS["journal"]), payload["runId"], payload["eventCount"]
    head = genesis = sha256("waybill/journal/v1\n" + run)
    for at, event in enumerate(journal["events"], 1):
        head = sha256(bytes.fromhex(head), canonical({name: event[name] for name in HASHED if name in event}))
        if not same([event.get("seq"), event.get("runId"), event.get("hash")], [at, run, head]): refuse("chain_broken")
    if len(journal["events"]) != count: refuse("event_count_mismatch")
    if head != payload["journalHash"]: refuse("journal_hash_mismatch")
    said = dict(runId=run, chain="sha256-v1", genesis=genesis, head=head, eventCount=count, sealed=True)
    if not same({**said, **without(journal, "events"), "runId": journal["runId"], "chain": journal["chain"]}, said): refuse("journal_header_mismatch")
def walk(records, kind, tenant, seq, head, ids):  # the hash of each record by its number
    hashes = {seq: head}
    for record in records:
        own = sha256(canonical(without(record, "hash")))
        once = kind == "feedback" or record["trace_id"] not in ids and not ids.add(record["trace_id"])
        for holds, reason in ((same(record["seq"], seq + 1), "seq"), (record["prev_hash"] == head, "prev_hash"), (record["hash"] == own, "hash"),
                              (record["tenant_id"] == tenant, "tenant"), (once, "trace_id")):
            holds or refuse(reason if kind == "record" else "feedback_" + reason)
        seq, head = seq + 1, hashes.setdefault(seq + 1, own)
    return hashes
def export(key, data):
    chains, ids, keys = {}, set(), {sha256(raw)[:16]: raw for raw in map(unbase64, key.split(","))}
    for value in (read(line) for line in data.split(b"\n") if line.strip(b" \t\r")):
        kind = next((kind for name, kind in KINDS.items() if name in value), "record")
        value.get("kind", "head") in ("head", "prune") or refuse("shape")
        for one in fixed(value, MEMBERS[kind]).get("keys", ()):
            sha256(unbase64(one["public_key"]))[:16] == one["key_id"] or refuse("shape")
        if kind != "keys": chains.setdefault(value["tenant_id"], dict(record=[], feedback=[], checkpoint=[]))[kind].append(value)
    for tenant, lines in sorted(chains.items()) or refuse("unsigned"):
        points, link = list({canonical(point): point for point in lines["checkpoint"]}.values()), ZEROS
        start = ([point for point in points if point["kind"] == "prune"] or [dict(seq=-1, hash=ZEROS, feedback_seq=-1, feedback_hash=ZEROS)])[-1]
        found = {kind: walk(lines[kind], kind, tenant, start[part + "seq"], start[part + "hash"], ids) for kind, part in PARTS}
        ends = {part: start[part + "seq"] for _, part in PARTS}
        for point in points:
            body = "router-checkpoint-v1\n" + canonical(without(point, "sig"))
            if not signed(keys.get(point["key_id"], b""), unbase64(point["sig"], True), body): refuse("checkpoint_signature")
            if point["prev_checkpoint"] != link: refuse("checkpoint_link")
            link = sha256(body)
            for kind, part in PARTS if any(chain["feedback"] for chain in chains.values()) else PARTS[:1]:
                seq, known = point[part + "seq"], found[kind].get(point[part + "seq"])
                if seq >= start[part + "seq"] and known != point[part + "hash"]: refuse((part or "checkpoint_") + "head" if known else part + "tail_cut")
                ends[part] = max(ends[part], seq)
        if any(max(found[kind]) > ends[part] for kind, part in PARTS): refuse("unsigned")
def verdict(check, *given):
    try: return check(*given) or "valid"
    except (Refused, KeyError, TypeError, ValueError, AttributeError, RecursionError) as why: return str(why) if isinstance(why, Refused) else "shape"
if __name__ == "__main__":
    if len(sys.argv) < 5: sys.exit(__doc__)
    said = verdict(dict(receipt=receipt, export=export)[sys.argv[1]], sys.argv[3], *(open(path, "rb").read() for path in sys.argv[4:]))
    sys.exit(print(said) if said == "valid" else f"NOT VALID  {said}")
