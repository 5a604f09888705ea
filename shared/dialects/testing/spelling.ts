import fc from 'fast-check'

/** A value with one of the many texts that mean it: white space, escapes and number forms are drawn. */
export function spelling<T>(values: fc.Arbitrary<T>): fc.Arbitrary<{ value: T; text: string }> {
  return fc.tuple(values, fc.infiniteStream(fc.nat(1000))).map(([value, stream]) => {
    const draw = (): number => stream.next().value ?? 0
    return { value, text: space(draw) + write(value, draw) + space(draw) }
  })
}

/** One spelling of one value, with choices from `draw`. */
export function write(value: unknown, draw: () => number): string {
  if (typeof value === 'string') return writeString(value, draw)
  if (typeof value === 'number') return writeNumber(value, draw)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value))
    return `[${value.map(item => space(draw) + write(item, draw) + space(draw)).join(',') || space(draw)}]`
  const members = Object.entries(value).map(
    ([key, member]) =>
      `${space(draw)}${writeString(key, draw)}${space(draw)}:${space(draw)}${write(member, draw)}${space(draw)}`,
  )
  return `{${members.join(',') || space(draw)}}`
}

export function space(draw: () => number): string {
  return ['', '', '', ' ', '\n', '\t', '\r\n', '  '][draw() % 8] ?? ''
}

/** Escapes some characters that need none. */
export function writeString(value: string, draw: () => number): string {
  let text = ''
  for (let i = 0; i < value.length; i += 1) {
    const unit = value.charCodeAt(i)
    const alone = unit >= 0xd800 && unit <= 0xdfff
    if (alone || draw() % 4 === 0) text += `\\u${unit.toString(16).padStart(4, '0')}`
    else text += unit === 0x2f && draw() % 2 === 0 ? '\\/' : JSON.stringify(value[i]).slice(1, -1)
  }
  return `"${text}"`
}

function writeNumber(value: number, draw: () => number): string {
  const plain = JSON.stringify(value)
  if (!/^-?\d+$/.test(plain)) return plain
  return [plain, `${plain}.0`, `${plain}e0`, `${plain}.00E+0`][draw() % 4] ?? plain
}
