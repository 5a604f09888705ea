/** A JSON pointer to a number that JSON has no word for. JSON.stringify writes it as null, so 1e400 would be sent as nothing. */
export function nonFiniteAt(value: unknown): string | undefined {
  // Without recursion: a text may be nested deeper than the stack.
  const open = [{ at: '', value }]
  for (let one = open.pop(); one; one = open.pop()) {
    const { at, value } = one
    if (typeof value === 'number' && !Number.isFinite(value)) return at
    if (typeof value !== 'object' || value === null) continue
    for (const [name, member] of Object.entries(value)) {
      open.push({ at: `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, value: member })
    }
  }
  return undefined
}
