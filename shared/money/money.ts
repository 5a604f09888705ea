/**
 * Money is held as whole nano-USD (1e-9 dollars) in a safe integer: 2^53 nano-USD are 9 million dollars, and every
 * operation here refuses to leave that range rather than lose a unit.
 */
export type NanoUsd = number

/** The most that one amount holds. */
export const MOST_NANO: NanoUsd = Number.MAX_SAFE_INTEGER

const NANO_PER_USD = 1_000_000_000
const PICO_PER_NANO = 1000n

export class MoneyRangeError extends RangeError {
  constructor(what: string) {
    super(`${what} is more money than one amount can hold (${MOST_NANO} nano-USD)`)
    this.name = 'MoneyRangeError'
  }
}

/** A dollar amount as it stands on the wire, to the nearest nano-USD. */
export function fromUsd(usd: number): NanoUsd {
  const nano = Math.round(usd * NANO_PER_USD)
  if (!Number.isSafeInteger(nano)) throw new MoneyRangeError(`${usd} USD`)
  return nano === 0 ? 0 : nano
}

/** Dollars for the wire: at most 9 decimals, and fromUsd gives back the same amount up to 10^15 nano-USD. */
export function toUsd(nano: NanoUsd): number {
  return nano / NANO_PER_USD
}

/** For what others say that calls have cost: the most that one amount holds, where it is more. */
export const boundedSum = (a: NanoUsd, b: NanoUsd): NanoUsd => Math.min(a + b, MOST_NANO)

export function sumNano(amounts: Iterable<NanoUsd>): NanoUsd {
  let sum = 0
  for (const amount of amounts) {
    sum += amount
    if (!Number.isSafeInteger(sum)) throw new MoneyRangeError('the sum')
  }
  return sum
}

/** Pico-USD (1e-12) to nano-USD, rounded half up: the one rounding an amount ever sees. */
export function nanoFromPico(pico: bigint): NanoUsd {
  const nano = Number((pico + PICO_PER_NANO / 2n) / PICO_PER_NANO)
  if (!Number.isSafeInteger(nano)) throw new MoneyRangeError('the cost')
  return nano
}

/** Plain decimal text without an exponent, for headers and terminals: `0.0092`, `12`. */
export function formatUsd(nano: NanoUsd): string {
  const sign = nano < 0 ? '-' : ''
  const digits = String(Math.abs(nano)).padStart(10, '0')
  const decimals = digits.slice(-9).replace(/0+$/, '')
  return sign + digits.slice(0, -9) + (decimals === '' ? '' : '.' + decimals)
}
