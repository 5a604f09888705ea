import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CronPattern, readCron } from './cron-pattern.ts'
import { nextFire, previewFires } from './next-fire.ts'
import { type OffsetAt, zoneOffset } from './zone.ts'

function pattern(expression: string): CronPattern {
  const read = readCron(expression)
  if (typeof read === 'string') throw new Error(read)
  return read
}

const zone = (name: string): OffsetAt => zoneOffset(name)!

/** The firings from one instant up to another, without seconds. */
function fires(expression: string, name: string, from: string, to: string): string[] {
  const cron = pattern(expression)
  const found: string[] = []
  for (let after = Date.parse(from) - 1; ; ) {
    const at = nextFire(cron, zone(name), after)
    if (at === undefined || at >= Date.parse(to)) return found
    found.push(new Date(at).toISOString().replace(':00.000Z', 'Z'))
    after = at
  }
}

describe('a time that the clocks jump over', () => {
  it('fires once, when they have jumped: Berlin, 2026-03-29, an hour at 02:00', () => {
    const day = ['2026-03-28T23:00Z', '2026-03-29T22:00Z'] as const
    expect(fires('30 2 * * *', 'Europe/Berlin', ...day)).toEqual(['2026-03-29T01:00Z'])
    expect(fires('*/20 2 * * *', 'Europe/Berlin', ...day)).toEqual(['2026-03-29T01:00Z'])
    expect(fires('30 2,3 * * *', 'Europe/Berlin', ...day)).toEqual(['2026-03-29T01:00Z', '2026-03-29T01:30Z'])
    expect(fires('0 2,3 * * *', 'Europe/Berlin', ...day)).toEqual(['2026-03-29T01:00Z'])
  })

  it('fires once, when they have jumped: New York, 2026-03-08, an hour at 02:00', () => {
    const day = ['2026-03-08T05:00Z', '2026-03-09T04:00Z'] as const
    expect(fires('15 2 * * *', 'America/New_York', ...day)).toEqual(['2026-03-08T07:00Z'])
    expect(fires('15 1-3 * * *', 'America/New_York', ...day)).toEqual([
      '2026-03-08T06:15Z',
      '2026-03-08T07:00Z',
      '2026-03-08T07:15Z',
    ])
  })

  it('fires once, when they have jumped: Lord Howe, 2026-10-04, half an hour at 02:00', () => {
    const day = ['2026-10-03T13:30Z', '2026-10-04T13:00Z'] as const
    expect(fires('15 2 * * *', 'Australia/Lord_Howe', ...day)).toEqual(['2026-10-03T15:30Z'])
    expect(fires('15,45 2 * * *', 'Australia/Lord_Howe', ...day)).toEqual(['2026-10-03T15:30Z', '2026-10-03T15:45Z'])
    expect(fires('15,30 2 * * *', 'Australia/Lord_Howe', ...day)).toEqual(['2026-10-03T15:30Z'])
  })

  it('fires once, when they have jumped: Apia, where 2011-12-30 did not happen', () => {
    const days = ['2011-12-29T10:00Z', '2011-12-31T10:00Z'] as const
    expect(fires('0 12 * * *', 'Pacific/Apia', ...days)).toEqual([
      '2011-12-29T22:00Z',
      '2011-12-30T10:00Z',
      '2011-12-30T22:00Z',
    ])
    // Midnight of the missing day and of the next are the same instant.
    expect(fires('0 0 * * *', 'Pacific/Apia', ...days)).toEqual(['2011-12-29T10:00Z', '2011-12-30T10:00Z'])
    expect(fires('0 6 30 12 *', 'Pacific/Apia', ...days)).toEqual(['2011-12-30T10:00Z'])
  })
})

describe('a time that comes twice', () => {
  it('fires the first time: Berlin, 2026-10-25, an hour from 02:00', () => {
    const day = ['2026-10-24T22:00Z', '2026-10-25T23:00Z'] as const
    expect(fires('30 2 * * *', 'Europe/Berlin', ...day)).toEqual(['2026-10-25T00:30Z'])
    expect(fires('*/20 2 * * *', 'Europe/Berlin', ...day)).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:20Z',
      '2026-10-25T00:40Z',
    ])
    expect(fires('30 2,3 * * *', 'Europe/Berlin', ...day)).toEqual(['2026-10-25T00:30Z', '2026-10-25T02:30Z'])
  })

  it('fires the first time: New York, 2026-11-01, an hour from 01:00', () => {
    const day = ['2026-11-01T04:00Z', '2026-11-02T05:00Z'] as const
    expect(fires('30 1 * * *', 'America/New_York', ...day)).toEqual(['2026-11-01T05:30Z'])
  })

  it('fires the first time: Lord Howe, 2026-04-05, half an hour from 01:30', () => {
    const day = ['2026-04-04T13:00Z', '2026-04-05T13:30Z'] as const
    expect(fires('45 1 * * *', 'Australia/Lord_Howe', ...day)).toEqual(['2026-04-04T14:45Z'])
    expect(fires('*/15 1 * * *', 'Australia/Lord_Howe', ...day)).toEqual([
      '2026-04-04T14:00Z',
      '2026-04-04T14:15Z',
      '2026-04-04T14:30Z',
      '2026-04-04T14:45Z',
    ])
  })

  it('fires the first time: Apia, 2012-04-01, an hour from 03:00', () => {
    const day = ['2012-03-31T10:00Z', '2012-04-01T11:00Z'] as const
    expect(fires('30 3 * * *', 'Pacific/Apia', ...day)).toEqual(['2012-03-31T13:30Z'])
  })
})

describe('an hour field of *', () => {
  it.each([
    ['Europe/Berlin', '2026-03-28T22:00Z', '2026-03-29T04:00Z', 30],
    ['Europe/Berlin', '2026-10-24T22:00Z', '2026-10-25T04:00Z', 30],
    ['America/New_York', '2026-11-01T03:00Z', '2026-11-01T09:00Z', 30],
    ['Australia/Lord_Howe', '2026-10-03T12:00Z', '2026-10-03T18:00Z', 30],
    ['Australia/Lord_Howe', '2026-04-04T12:00Z', '2026-04-04T18:00Z', 30],
    ['Pacific/Apia', '2011-12-30T07:00Z', '2011-12-30T13:00Z', 30],
  ])('goes by the time that passes: %s from %s', (name, from, to, minutes) => {
    const every = Array.from({ length: (Date.parse(to) - Date.parse(from)) / (minutes * 60_000) }, (_, at) =>
      new Date(Date.parse(from) + at * minutes * 60_000).toISOString().replace(':00.000Z', 'Z'),
    )
    expect(fires(`*/${minutes} * * * *`, name, from, to)).toEqual(every)
  })

  it.each([
    ['0 * 1 * *', 'Europe/Berlin', '2026-03-20T00:00Z', '2026-03-31T22:00Z'],
    ['0 * 1 * *', 'America/New_York', '2026-10-20T00:00Z', '2026-11-01T04:00Z'],
    ['47 * * * 2L', 'Pacific/Chatham', '2016-09-23T10:09Z', '2016-09-26T11:02Z'],
    ['15 * 29 2 *', 'Australia/Lord_Howe', '2026-03-01T00:00Z', '2028-02-28T13:15Z'],
  ])(
    'finds a day that is further off than a change of the clocks: %s in %s from %s',
    (expression, name, from, first) => {
      const at = nextFire(pattern(expression), zone(name), Date.parse(from))
      expect(new Date(at!).toISOString()).toBe(first.replace('Z', ':00.000Z'))
    },
  )

  it('sees the hour before midnight again where clocks go back at midnight: Santiago, 2026-04-05', () => {
    expect(fires('59 * 4 4 *', 'America/Santiago', '2026-04-05T01:30Z', '2026-04-06T00:00Z')).toEqual([
      '2026-04-05T01:59Z',
      '2026-04-05T02:59Z',
      '2026-04-05T03:59Z',
    ])
  })
})

const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'America/Santiago', 'Asia/Kolkata', 'UTC']
const someZone = fc.constantFrom(...zones)
const field = (most: number) =>
  fc.oneof(
    fc.constant('*'),
    fc.integer({ min: 0, max: most }).map(String),
    fc.integer({ min: 2, max: 20 }).map(step => `*/${step}`),
    fc
      .uniqueArray(fc.integer({ min: 0, max: most }), { minLength: 2, maxLength: 4 })
      .map(list => list.sort((a, b) => a - b).join(',')),
  )
/** Moments near the changes of 2026, where something can go wrong. */
const moment = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(...['2026-03-08', '2026-03-29', '2026-04-05', '2026-10-04', '2026-10-25', '2026-11-01']),
      fc.integer({ min: -30 * 3600, max: 30 * 3600 }),
    )
    .map(([day, seconds]) => Date.parse(day) + seconds * 1000),
  fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2027, 0) }),
)

describe('the next firing', () => {
  it('is what a walk through every minute finds', () => {
    fc.assert(
      fc.property(field(59), field(23), someZone, moment, (minute, hour, name, from) => {
        const offsetAt = zone(name)
        const expected = walk(minute, hour, offsetAt, from, from + 27 * 3_600_000)
        const found = nextFire(pattern(`${minute} ${hour} * * *`), offsetAt, from)
        if (expected === undefined) expect(found).toBeGreaterThan(from + 27 * 3_600_000)
        else expect(new Date(found!).toISOString()).toBe(new Date(expected).toISOString())
      }),
      { numRuns: 200 },
    )
  })

  it('of an hour field of * and a day of the month is the first quarter that matches', () => {
    const quarters = fc.constantFrom(0, 15, 30, 45)
    fc.assert(
      fc.property(quarters, fc.integer({ min: 1, max: 28 }), someZone, moment, (minute, day, name, from) => {
        const offsetAt = zone(name)
        let at = Math.floor(from / 900_000) * 900_000 + 900_000
        for (; ; at += 900_000) {
          const wall = new Date(at + offsetAt(at))
          if (wall.getUTCDate() === day && wall.getUTCMinutes() === minute) break
        }
        expect(nextFire(pattern(`${minute} * ${day} * *`), offsetAt, from)).toBe(at)
      }),
      { numRuns: 60 },
    )
  })

  it('is later than the moment it is asked for, and asked from anywhere before it the same', () => {
    fc.assert(
      fc.property(
        field(59),
        field(23),
        someZone,
        moment,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (m, h, name, from, part) => {
          const cron = pattern(`${m} ${h} * * *`)
          const next = nextFire(cron, zone(name), from)!
          expect(next).toBeGreaterThan(from)
          expect(nextFire(cron, zone(name), from + Math.floor((next - from) * part))).toBe(next)
        },
      ),
    )
  })
})

/** The rule of the contract, said the slow way: minute by minute, each wall-clock minute of the zone looked at. */
function walk(minute: string, hour: string, offsetAt: OffsetAt, from: number, to: number): number | undefined {
  const has = (text: string, value: number) =>
    text === '*' ||
    (text.startsWith('*/') ? value % Number(text.slice(2)) === 0 : text.split(',').map(Number).includes(value))
  const matches = (wall: number) =>
    has(minute, new Date(wall).getUTCMinutes()) && has(hour, new Date(wall).getUTCHours())
  const start = Math.floor(from / 60_000 + 1) * 60_000
  let latest = Number.NEGATIVE_INFINITY
  for (let at = start - 3 * 3_600_000; at <= to; at += 60_000) {
    const wall = at + offsetAt(at)
    const [seen, before] = [wall <= latest, at - 60_000 + offsetAt(at - 60_000)]
    latest = Math.max(latest, wall)
    if (at < start) continue
    if (hour === '*') {
      if (matches(wall)) return at
      continue
    }
    // Those that the clocks jumped over on the way here, and this one unless it was there before.
    for (let skipped = before + 60_000; skipped < wall; skipped += 60_000) if (matches(skipped)) return at
    if (matches(wall) && !seen) return at
  }
  return undefined
}

describe('a cron expression', () => {
  it.each([
    ['0 9 L * *', ['2027-01-31', '2027-02-28', '2027-03-31', '2027-04-30']],
    ['0 9 5W * *', ['2027-01-05', '2027-02-05', '2027-03-05', '2027-04-05']],
    // 2027-03-06 is a Saturday and 2027-02-07 a Sunday.
    ['0 9 6W 3 *', ['2027-03-05']],
    ['0 9 7W 2 *', ['2027-02-08']],
    // 2027-05-01 is a Saturday, and the Friday before it is of another month.
    ['0 9 1W 5 *', ['2027-05-03']],
    ['0 9 * * 5L', ['2027-01-29', '2027-02-26', '2027-03-26', '2027-04-30']],
    ['0 9 * * FRI#2', ['2027-01-08', '2027-02-12', '2027-03-12', '2027-04-09']],
    ['0 9 ? 4 MON#1', ['2027-04-05']],
  ])('finds the days of %s in the calendar of 2027', (expression, days) => {
    const found = fires(
      expression,
      'UTC',
      '2027-01-01T00:00Z',
      expression.includes(' 5 *') ? '2027-06-01T00:00Z' : '2027-05-01T00:00Z',
    )
    expect(found).toEqual(days.map(day => `${day}T09:00Z`))
  })

  it('is five or six fields, with names, lists, steps and the last days, or a nickname', () => {
    const first = (expression: string) =>
      previewFires(pattern(expression), zone('UTC'), { afterMs: START, count: 1 })[0]!.at
    const START = Date.parse('2026-03-01T00:00:00Z')
    expect(
      ['*/10 * * * * *', '0 9 * JAN MON-FRI', '0 0 L * *', '0 0 15W * *', '0 0 * * 5L', '0 0 * * FRI#2', '@weekly'].map(
        first,
      ),
    ).toEqual([
      '2026-03-01T00:00:10.000Z',
      '2027-01-01T09:00:00.000Z',
      '2026-03-31T00:00:00.000Z',
      '2026-03-16T00:00:00.000Z',
      '2026-03-27T00:00:00.000Z',
      '2026-03-13T00:00:00.000Z',
      '2026-03-08T00:00:00.000Z',
    ])
    // Day of month and day of week: either.
    expect(fires('0 0 13 * FRI', 'UTC', '2026-03-01T00:00Z', '2026-03-14T00:00Z')).toEqual([
      '2026-03-06T00:00Z',
      '2026-03-13T00:00Z',
    ])
  })

  it.each(['', 'soon', '* * * *', '* * * * * * *', '0 25 * * *', '0 0 31 2 *', '@reboot', '2026-12-01T00:00:00'])(
    'is refused with a sentence: %j',
    expression => {
      expect(readCron(expression)).toMatch(/expected a cron expression|would never fire/)
    },
  )
})

describe('a zone', () => {
  it('is a name of the IANA tables', () => {
    expect(['Europe/Berlin', 'UTC', 'Etc/GMT+5', 'europe/berlin'].map(name => zoneOffset(name) !== undefined)).toEqual(
      Array(4).fill(true),
    )
    expect(['Mars/Olympus', '+02:00', '', 'Berlin', 'a'.repeat(70)].map(name => zoneOffset(name))).toEqual(
      Array(5).fill(undefined),
    )
  })
})

it('shows a firing as the clock on the wall does', () => {
  const afterMs = Date.parse('2026-03-28T12:00:00Z')
  expect(previewFires(pattern('30 2 * * *'), zone('Europe/Berlin'), { afterMs, count: 2 })).toEqual([
    { at: '2026-03-29T01:00:00.000Z', local: '2026-03-29T03:00:00', offset: '+02:00' },
    { at: '2026-03-30T00:30:00.000Z', local: '2026-03-30T02:30:00', offset: '+02:00' },
  ])
  expect(previewFires(pattern('@daily'), zone('America/St_Johns'), { afterMs, count: 1 })[0]?.offset).toBe('-02:30')
})
