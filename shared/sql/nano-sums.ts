import { MOST_NANO } from '../money/money.ts'

/**
 * The sum of nano-USD over rows, none of which there may be. Providers say what calls cost, and a tenant may own one: `sum` would go on to an integer
 * that no reader takes, and to an error behind it.
 */
export const nanoSum = (of: string): string => `min(total(${of}), ${MOST_NANO}.0)`

/** A column of nano-USD with so much added. */
export const nanoPlus = (column: string, more: string): string => `min(${column} + ${more}, ${MOST_NANO})`
