import { describe, expect, it } from 'vitest'
import type { EgressClient } from '../../../shared/http/outbound/egress-client.ts'
import { systemClock } from '../../../shared/time/clock.ts'
import { manualClock } from '../../../shared/time/testing/manual-clock.ts'
import { readArguments, schemaOf } from '../arguments.ts'
import { vendorCalls } from '../call.ts'
import { readConfig } from '../config.ts'
import type { Connector } from '../definition.ts'
import { VendorFailure } from '../vendor-failure.ts'
import type { ActionFixture, Answered, Exchange, Fixture } from './fixture.ts'
import type { ScriptedVendor } from './scripted-vendor.ts'

/** A connector, what its vendor documents, and a scripted vendor that is there once the tests run. */
export interface Answering {
  connector: Connector
  fixture: Fixture
  egress: () => Pick<EgressClient, 'fetch'>
  vendor: () => ScriptedVendor
}

/** An action of a connector against the scripted vendor, through everything that a call goes through. */
function bench({ connector, fixture, egress, vendor }: Answering, name: string) {
  const { id } = connector
  const action = connector.actions[name]!
  const given: ActionFixture = fixture.actions[name]!
  const waited: number[] = []
  const clock = manualClock(new Date('2026-01-02T03:04:05.000Z'))
  const calls = vendorCalls({
    fetch: egress().fetch,
    clock,
    async wait(ms) {
      waited.push(ms)
      clock.advance(ms)
    },
  })
  const { credential, missing } = readConfig(connector, fixture.config)
  const target = { installId: `${id}/${name}`, connector, credential, baseUrl: vendor().origin }
  const [first, ...rest] = given.exchanges
  const answering = (answer: Answered, ...more: Exchange[]): Exchange[] => [[first[0], answer], ...more]
  const run = async (exchanges: readonly Exchange[], args: Record<string, unknown> = given.arguments) => {
    vendor().script(fixture.headers, exchanges)
    const result = await calls
      .execute({ ...target }, action, readArguments(action, args), { key: 'k' })
      .catch((error: unknown) => error)
    return { result, problems: vendor().problems(), requests: vendor().count() }
  }
  const fails = async (exchanges: readonly Exchange[]) => {
    const { result, problems, requests } = await run(exchanges)
    expect(problems).toEqual([])
    if (!(result instanceof VendorFailure)) throw new Error(`expected a failure and got ${JSON.stringify(result)}`)
    for (const [key, value] of Object.entries(credential.values)) {
      if (connector.keys.some(one => one.name === key && one.secret)) expect(result.message).not.toContain(value)
    }
    return { failure: result, requests }
  }
  return { action, fixture, given, first, rest, missing, waited, answering, run, fails }
}

/** A key goes along with everything that changes something. */
const withKey = (effect: string, exchanges: readonly Exchange[]): Exchange[] =>
  exchanges.map(([request, answer]) =>
    effect === 'read' || request.method === 'GET'
      ? [request, answer]
      : [{ ...request, headers: { ...request.headers, 'idempotency-key': 'k' } }, answer],
  )

/** What every action has to do with each of the seven answers that a vendor may give. */
export function describeAction(given: Answering, name: string): void {
  describe(`${given.connector.id} ${name}`, () => {
    const made = () => bench(given, name)

    it('sends what the vendor documents, and gives what it answers', async () => {
      const { run, given, action, missing } = made()
      expect(missing).toEqual([])
      const { result, problems } = await run(withKey(action.effect, given.exchanges))
      expect(problems).toEqual([])
      expect(result).toEqual(given.result)
    })

    it('takes an answer with nothing in it', async () => {
      const { run, given, answering, action } = made()
      const { result, problems } = await run(withKey(action.effect, answering(given.empty.answer)))
      expect(problems).toEqual([])
      expect(result).toEqual(given.empty.result)
    })

    it('goes on to a second page by the cursor of the first, or knows no pages', async () => {
      const { run, given, action } = made()
      const { nextCursor } = given.result
      const args = { ...given.arguments, cursor: nextCursor ?? 'made up' }
      const exchanges = given.second?.exchanges ?? given.exchanges
      const { result, problems } = await run(withKey(action.effect, exchanges), args)
      expect(problems).toEqual([])
      expect(result).toEqual(given.second?.result ?? given.result)
      expect(result).not.toHaveProperty('nextCursor')
      expect(nextCursor !== undefined).toBe('cursor' in action.arguments.shape)
    })

    it('waits as long as it is told to and asks again, unless that could do something twice', async () => {
      const { run, fails, given, answering, fixture, action, rest, first, waited } = made()
      const limited = fixture.limited ?? { status: 429, headers: { 'retry-after': '2' }, body: {} }
      if (action.effect === 'once') {
        const { failure, requests } = await fails(withKey(action.effect, answering(limited)))
        expect([failure.later, failure.declined, requests, waited]).toEqual([true, true, 1, []])
        return
      }
      const { result, problems } = await run(withKey(action.effect, answering(limited, first, ...rest)))
      expect(problems).toEqual([])
      expect(result).toEqual(given.result)
      expect(waited[0]).toBe(2000)
    })

    it('knows when its credentials are refused', async () => {
      const { fails, answering, fixture, action } = made()
      const { failure, requests } = await fails(withKey(action.effect, answering(fixture.refused)))
      expect([failure.refused, failure.later, requests]).toEqual([true, false, 1])
    })

    it('fails with the words of the vendor, also where they come with 200', async () => {
      const { fails, answering, fixture, action } = made()
      const { failure, requests } = await fails(withKey(action.effect, answering(fixture.fault)))
      expect([failure.message, failure.status, failure.refused, failure.declined, requests]).toEqual([
        ...[fixture.fault.message, fixture.fault.status ?? 200, false, true, 1],
      ])
    })

    it('fails on an answer that is not JSON', async () => {
      const { fails, answering, action, first } = made()
      const { failure, requests } = await fails(withKey(action.effect, answering({ raw: '{"items": [{"id": 1' })))
      expect([failure.message, failure.declined, requests]).toEqual([
        'answered with something that is not JSON',
        first[0].method === 'GET',
        1,
      ])
    })

    it('describes its arguments as JSON Schema, and names each that is missing', () => {
      const { action } = made()
      const schema = schemaOf(action)
      expect(schema).toMatchObject({ type: 'object', properties: expect.any(Object) })
      const needed = (schema.required ?? []) as string[]
      if (needed.length === 0) expect(() => readArguments(action, {})).not.toThrow()
      else {
        const paths = () => {
          try {
            readArguments(action, {})
          } catch (error) {
            return (error as { details: { path: string; message: string }[] }).details
          }
        }
        expect(paths()).toEqual(needed.map(path => ({ path, message: 'Required' })))
      }
    })
  })
}

export function describeProbe({ connector, fixture, egress, vendor }: Answering): void {
  it(`the test of ${connector.id} asks the vendor for something that needs the credentials`, async () => {
    const calls = vendorCalls({ fetch: egress().fetch, clock: systemClock, wait: async () => undefined })
    const { credential } = readConfig(connector, fixture.config)
    const target = { installId: connector.id, connector, credential, baseUrl: vendor().origin }
    vendor().script(fixture.headers, fixture.probe.exchanges)
    expect(await calls.probe(target)).toBe(fixture.probe.account)
    expect(vendor().problems()).toEqual([])
    vendor().script(
      fixture.headers,
      fixture.probe.exchanges.map(([request]) => [request, fixture.refused]),
    )
    await expect(calls.probe(target)).rejects.toMatchObject({ refused: true })
  })
}
