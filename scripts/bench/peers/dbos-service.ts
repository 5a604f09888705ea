import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'

/** As much of DBOS's SDK as is used here; it is no dependency of the project. */
interface Sdk {
  DBOS: {
    setConfig: (of: { name: string; systemDatabaseUrl: string; runAdminServer: boolean; logLevel: string }) => void
    launch: () => Promise<void>
    runStep: (step: () => Promise<number>, of: { name: string }) => Promise<number>
    registerWorkflow: <T>(workflow: T, of: { name: string }) => T
  }
}

const { DBOS } = createRequire(`${process.env.PEER}/package.json`)('@dbos-inc/dbos-sdk') as Sdk
const systemDatabaseUrl = process.env.DATABASE ?? ''
DBOS.setConfig({ name: 'noop', systemDatabaseUrl, runAdminServer: false, logLevel: 'error' })
const noop = DBOS.registerWorkflow(
  async (steps: number) => {
    for (let step = 0; step < steps; step++) await DBOS.runStep(async () => step, { name: 'step' })
    return steps
  },
  { name: 'noop' },
)
await DBOS.launch()
createServer(async (request, response) => {
  const { steps } = JSON.parse((await text(request)) || '{}') as { steps?: number }
  response.end(steps === undefined ? '' : String(await noop(steps)))
}).listen(Number(process.env.PORT), '127.0.0.1')
