/** The module is not one that may run; the message says why. */
export class ModuleRefusedError extends Error {
  override name = 'ModuleRefusedError'
}

const MAGIC = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
const COMPONENT = [0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00]
const IMPORTS = 2
const MEMORY = 5
const IMPORTED_MEMORY = 2
export const PAGE_BYTES = 65_536

/**
 * The module with its memory capped. A limit on a worker's heap does not bound WebAssembly memory, so the maximum in
 * the module itself (core specification §5.5.8) is what holds. Refused: memory from outside, more than one, shared or
 * 64-bit memory, and a start larger than the cap.
 */
export function capMemory(module: Uint8Array, maxPages: number): Uint8Array {
  if (COMPONENT.every((byte, index) => module[index] === byte))
    throw new ModuleRefusedError('This is a component; compile it for WASI preview 1 (wasm32-wasip1), as a command.')
  if (MAGIC.some((byte, index) => module[index] !== byte))
    throw new ModuleRefusedError('This is no WebAssembly module.')
  const parts: Uint8Array[] = [module.subarray(0, MAGIC.length)]
  let seen = false
  for (let at = MAGIC.length; at < module.length; ) {
    const id = module[at]!
    const [size, body] = readNumber(module, at + 1)
    const end = body + size
    if (end > module.length) throw new ModuleRefusedError('The module is cut off.')
    const content = module.subarray(body, end)
    if (id === IMPORTS) refuseImportedMemory(content)
    if (id === MEMORY) {
      if (seen) throw new ModuleRefusedError('The module declares its memory twice.')
      seen = true
      const capped = cappedSection(content, maxPages)
      parts.push(new Uint8Array([MEMORY, ...numberBytes(capped.length)]), capped)
    } else {
      parts.push(module.subarray(at, end))
    }
    at = end
  }
  return new Uint8Array(Buffer.concat(parts))
}

function cappedSection(content: Uint8Array, maxPages: number): Uint8Array {
  const [count, at] = readNumber(content, 0)
  if (count === 0) return content
  if (count !== 1) throw new ModuleRefusedError('The module has more than one memory.')
  const flags = content[at]
  if (flags !== 0 && flags !== 1) throw new ModuleRefusedError('The memory of the module is shared or 64-bit.')
  const [min, afterMin] = readNumber(content, at + 1)
  const max = flags === 1 ? readNumber(content, afterMin)[0] : maxPages
  if (min > maxPages) {
    throw new ModuleRefusedError(`The module starts with ${min} pages of memory, and may have ${maxPages}.`)
  }
  return new Uint8Array([1, 1, ...numberBytes(min), ...numberBytes(Math.min(max, maxPages))])
}

function refuseImportedMemory(content: Uint8Array): void {
  let [count, at] = readNumber(content, 0)
  for (; count > 0; count--) {
    for (let names = 0; names < 2; names++) {
      const [length, text] = readNumber(content, at)
      at = text + length
    }
    const kind = content[at++]
    if (kind === IMPORTED_MEMORY) throw new ModuleRefusedError('The module takes its memory from outside.')
    if (kind !== 0) throw new ModuleRefusedError('The module imports something that is not a function.')
    ;[, at] = readNumber(content, at)
  }
}

/** Unsigned LEB128 of at most 32 bits: value, and the place behind it. */
export function readNumber(bytes: Uint8Array, from: number): [value: number, next: number] {
  let value = 0
  for (let index = 0; index < 5; index++) {
    const byte = bytes[from + index]
    if (byte === undefined) throw new ModuleRefusedError('The module is cut off.')
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) {
      if (value > 0xffffffff) break
      return [value, from + index + 1]
    }
  }
  throw new ModuleRefusedError('The module holds a number that is too large.')
}

export function numberBytes(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) | 0x80)
  }
}
