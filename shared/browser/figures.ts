/** Dollars as they are on the receipt: a price that is not known is no number. */
export function usd(value: number | null | undefined): string {
  if (value === null || value === undefined) return 'unknown'
  const size = Math.abs(value)
  const digits = size >= 100 ? 2 : size >= 1 ? 4 : 9
  const [whole = '0', rest = ''] = size.toFixed(digits).split('.')
  const cents = rest.replace(/0+$/, '').padEnd(2, '0')
  return `${value < 0 ? '−' : ''}$${grouped(whole)}.${cents}`
}

/** Dollars to be compared at a glance: cents from a dollar on, four decimals below. What is exact stands in a title or on the record. */
export function money(value: number): string {
  const size = Math.abs(value)
  const sign = value < 0 ? '−' : ''
  if (size === 0) return '$0.00'
  if (size < 0.00005) return `${sign}<$0.0001`
  if (size < 0.99995) return `${sign}$${size.toFixed(4)}`
  const [whole = '0', cents = '00'] = size.toFixed(2).split('.')
  return `${sign}$${grouped(whole)}.${cents}`
}

export function count(value: number): string {
  return grouped(String(value))
}

/** A word in the number of what it counts. */
export function many(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`
}

/** A part of a whole. Nearly all does not read as all, nor a little as nothing. */
export function percent(part: number, digits = part !== 0 && Math.abs(part) < 0.1 ? 1 : 0): string {
  const size = Math.abs(part)
  if (size > 0 && size < 0.0005) return `${part < 0 ? '-' : ''}<0.1\u00a0%`
  const words = (part * 100).toFixed(part === 1 ? 0 : digits)
  return `${size < 1 && Math.abs(Number(words)) === 100 ? words.replace(/100(\.0)?/, '99.9') : words}\u00a0%`
}

export function milliseconds(value: number | null): string {
  if (value === null) return '–'
  if (value >= 10_000) return `${(value / 1000).toFixed(1)}\u00a0s`
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(2)}\u00a0ms`
}

/** A time that was taken by clocks of whole milliseconds. */
export function duration(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)}\u00a0ms`
  if (ms < 9_995) return `${(ms / 1000).toFixed(2)}\u00a0s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${(ms / 1000).toFixed(1)}\u00a0s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 120
    ? `${minutes}\u00a0min ${seconds % 60}\u00a0s`
    : `${Math.floor(minutes / 60)}\u00a0h ${minutes % 60}\u00a0min`
}

/** The same in every time zone, as it stands on the record. */
export function moment(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ',')
}
