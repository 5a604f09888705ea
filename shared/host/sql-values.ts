import type { InValue, ResultSet, Row, Value } from '@libsql/client/web'

/** An argument as the driver takes it. */
export function toSql(value: InValue): unknown {
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) throw new RangeError('Only finite numbers can be passed as arguments')
      return value
    case 'bigint':
      if (BigInt.asIntN(64, value) !== value) throw new RangeError('A bigint argument needs more than 64 bits')
      return value
    case 'boolean':
      return value ? 1 : 0
    case 'undefined':
      throw new TypeError('undefined cannot be passed as argument to the database')
    default:
      if (value instanceof ArrayBuffer) return Buffer.from(value)
      return value instanceof Date ? value.valueOf() : value
  }
}

function fromSql(value: unknown): Value {
  if (typeof value === 'bigint') {
    const number = Number(value)
    if (!Number.isSafeInteger(number))
      throw new RangeError(`The integer ${value} is beyond what a number holds exactly`)
    return number
  }
  if (value instanceof Uint8Array) {
    const { buffer, byteOffset, byteLength } = value
    return (
      byteLength === buffer.byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)
    ) as ArrayBuffer
  }
  return value as Value
}

/** Rows with a member per column, and the same values by place, which are not enumerable. */
export function toRows(found: readonly unknown[][], columns: readonly string[]): Row[] {
  if (found.length === 0) return []
  const byPlace: PropertyDescriptorMap = { length: { value: columns.length } }
  for (const [place, name] of columns.entries()) {
    byPlace[place] = {
      get(this: Record<string, Value>) {
        return this[name]
      },
    }
  }
  const plain =
    new Set(columns).size === columns.length && !columns.some(name => name === 'length' || /^\d+$/.test(name))
  const shape: object = plain ? Object.create(Object.prototype, byPlace) : Object.prototype
  return found.map(values => {
    const row = Object.create(shape) as Record<string, Value>
    if (!plain) Object.defineProperty(row, 'length', { value: values.length })
    for (let place = 0; place < values.length; place++) {
      const name = columns[place] as string
      const value = fromSql(values[place])
      if (plain) row[name] = value
      else {
        Object.defineProperty(row, place, { value })
        if (!Object.hasOwn(row, name)) Object.defineProperty(row, name, { value, enumerable: true, writable: true })
      }
    }
    return row as unknown as Row
  })
}

export function toResult(
  columns: string[],
  columnTypes: string[],
  rows: Row[],
  rowsAffected: number,
  lastInsertRowid: bigint | undefined,
): ResultSet {
  return {
    ...{ columns, columnTypes, rows, rowsAffected, lastInsertRowid },
    toJSON: () => ({
      ...{ columns, columnTypes, rowsAffected, lastInsertRowid: lastInsertRowid?.toString() ?? null },
      rows: rows.map(row => columns.map((_, place) => row[place])),
    }),
  }
}
