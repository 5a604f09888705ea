import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { engineFixture, says } from '../../../runtime/execution/testing/engine-fixture.ts'
import { silentLog } from '../../../shared/log/log.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import type { ManifestFile } from '../../../shared/wire/runtime/manifest-parts.ts'
import { nodeEnv } from '../../env.ts'
import { nodeSandboxes } from '../../sandboxes.ts'

/** One life of a process that executes a code agent; with a step, it kills itself before that step's result is kept. */
const [folder = '.', image = '', state = '', kill = '', isolation = 'runc', language = 'python3'] =
  process.argv.slice(2)
const killAt = kill === '' ? undefined : kill

const PROGRAM = `
import waybill
def one():
    open("one.txt", "w").write("one")
    return None
waybill.step("one", one)
said = waybill.model("what?")["text"]
three = waybill.step("three", lambda: "three")
waybill.finish(open("one.txt").read() + ":" + said + ":" + three)
`

const IN_JAVASCRIPT = `
import { finish, model, step } from 'waybill'
await step('one', () => { writeFile('one.txt', 'one') })
const { text } = await model('what?')
const three = await step('three', () => 'three')
await finish([readFile('one.txt'), text, three].join(':'))
`

const MODULE = new URL('../../../tests/wasi-agent/agent.wasm', import.meta.url)
const FILES: Record<string, ManifestFile> = {
  python3: { path: 'main.py', content: PROGRAM, encoding: 'utf8', executable: false },
  node: { path: 'main.js', content: IN_JAVASCRIPT, encoding: 'utf8', executable: false },
  wasi: { path: 'agent.wasm', content: readFileSync(MODULE, 'base64'), encoding: 'base64', executable: false },
}
const file = FILES[language]!

function watched(db: Db): Db {
  return {
    ...db,
    async write(statements) {
      const text = JSON.stringify(statements)
      if (killAt !== undefined && text.includes('step_completed') && text.includes(`\\"stepId\\":\\"${killAt}\\"`)) {
        process.kill(process.pid, 'SIGKILL')
      }
      return db.write(statements)
    },
  }
}

const env = nodeEnv.parse({ NODE_AGENT_STATE_DIR: state, NODE_AGENT_IMAGE_DIR: image })
const sandboxes = nodeSandboxes({ env, workspaces: join(folder, 'workspaces'), log: silentLog() })
const room = await engineFixture({
  url: join(folder, 'run.db'),
  manifest: {
    isolation,
    entrypoint: { command: language, args: [file.path] },
    files: [file],
  },
  sandboxes,
  wrap: watched,
  owner: `pid:${process.pid}`,
  isGone: owner => owner !== `pid:${process.pid}`,
  async ask() {
    appendFileSync(join(folder, 'asked.log'), 'asked\n')
    return says('forty-two')
  },
})
const [run] = rowsOf<{ id: string }>(await room.db.execute('select id from runs'))
const id = run?.id ?? (await room.create({ prompt: 'go' }))
await room.engine.start()
room.engine.wake()
await room.until(id, undefined, 40_000)
await room.close()
await sandboxes.close()
