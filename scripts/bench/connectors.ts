import { readArguments } from '../../runtime/connectors/arguments.ts'
import { vendorCalls } from '../../runtime/connectors/call.ts'
import { catalogue } from '../../runtime/connectors/catalogue.ts'
import { compile } from '../../runtime/connectors/openapi/compile.ts'
import { customConnector } from '../../runtime/connectors/openapi/custom-connector.ts'
import { readDocument } from '../../runtime/connectors/openapi/document.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import type { EgressClient } from '../../shared/http/outbound/egress-client.ts'
import { systemClock } from '../../shared/time/clock.ts'
import { sleep } from '../../shared/time/sleep.ts'
import type { Bench } from './harness.ts'

const KEY = `wb_live_${'b'.repeat(43)}`
const TIMES = 400
const CONFIG = { personalAccessToken: 'github_pat_of_a_bench' }
const ARGUMENTS = { owner: 'octo', repo: 'hello', limit: '30' }

/** The same request, as an OpenAPI document has it. */
const parameter = (name: string, type: string, where = 'path') => ({
  name,
  in: where,
  required: where === 'path',
  schema: { type },
})
const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Bench', version: '1' },
  servers: [{ url: 'https://api.github.com' }],
  components: { securitySchemes: { key: { type: 'http', scheme: 'bearer' } } },
  paths: {
    '/repos/{owner}/{repo}/pulls': {
      get: {
        operationId: 'list_prs',
        security: [{ key: [] }],
        parameters: [parameter('owner', 'string'), parameter('repo', 'string'), parameter('limit', 'integer', 'query')],
      },
    },
  },
}

/** A page of pull requests as it comes, about 60 kB. */
const page = JSON.stringify(
  Array.from({ length: 30 }, (_, number) => ({ number, title: `change ${number}`, body: 'words '.repeat(330) })),
)
const answer = async () => new Response(page, { headers: { link: '<https://api.github.com/x?page=2>; rel="next"' } })
const egress: EgressClient = { fetch: answer, problem: async () => undefined, close: async () => undefined }

export const connectorsBench: Bench = {
  title: 'Connectors',
  about:
    'One action (a page of 30 pull requests, 60 kB of JSON) against a vendor that answers in this process at once, one after the other: reading and parsing the answer alone, the connector core (arguments, rate rule, credentials, deadline, redaction, paging), and an execute of the API with its audit entry, which is two commits with fsync.',
  unit: 'actions/s',
  rounds: 5,
  expectations: [
    {
      says: 'milliseconds of the core beside reading the answer',
      value: ({ variants }) => 1000 / variants[1]!.median - 1000 / variants[0]!.median,
      atMost: 1,
    },
    {
      says: 'milliseconds of the core of a connector from a document beside reading the answer',
      value: ({ variants }) => 1000 / variants[2]!.median - 1000 / variants[0]!.median,
      atMost: 1,
    },
  ],
  async prepare() {
    const { github } = catalogue
    const action = github.actions.list_prs!
    const calls = vendorCalls({ fetch: answer, clock: systemClock, wait: sleep })
    const credential = { method: 'token', values: CONFIG } as const
    const target = { installId: 'bench', connector: github, credential }
    const fromDocument = customConnector('http-bench', compile(await readDocument(DOCUMENT), ['list_prs'], undefined))
    const ownAction = fromDocument.actions.list_prs!
    const own = {
      installId: 'own',
      connector: fromDocument,
      credential: { method: 'token', values: { key: 'k-of-a-bench' } } as const,
    }
    const db = await openDb(':memory:')
    const runtime = createRuntime({ db, bootstrapKey: KEY, egress, masterKey: new Uint8Array(32).fill(1) })
    await runtime.ready()
    const post = async (path: string, body: unknown) => {
      const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      const answered = await runtime.fetch(new Request(`http://bench${path}`, init))
      const text = await answered.text()
      if (!answered.ok) throw new Error(`${path}: ${answered.status} ${text}`)
    }
    await post('/v1/connectors/install', { connectorId: 'github', config: CONFIG })
    const round = (one: () => Promise<unknown>) => async () => {
      const started = performance.now()
      for (let n = 0; n < TIMES; n++) await one()
      return (TIMES * 1000) / (performance.now() - started)
    }
    return {
      variants: [
        { name: 'reading the answer alone', round: round(async () => JSON.parse(await (await answer()).text())) },
        {
          name: 'the connector core',
          round: round(() => calls.execute(target, action, readArguments(action, ARGUMENTS))),
        },
        {
          name: 'the core of a connector from a document',
          round: round(() => calls.execute(own, ownAction, readArguments(ownAction, ARGUMENTS))),
        },
        {
          name: 'an execute of the API',
          round: round(() => post('/v1/connectors/github/execute?action=list_prs', ARGUMENTS)),
        },
      ],
      async close() {
        await runtime.close()
        db.close()
      },
    }
  },
}
