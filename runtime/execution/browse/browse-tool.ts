import { z } from 'zod'
import { builtInTools, interruptedDefault, type Tool } from '../../../shared/wire/runtime/tool.ts'
import { StepFailure } from '../failure.ts'
import { provenance, type SandboxOfRun } from '../sandbox/run-sandbox.ts'
import { EGRESS_PORT, type RunSandbox } from '../sandbox/sandboxes.ts'
import type { StepResult } from '../step-spec.ts'
import { egressProblem } from '../tools/egress.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'
import { type Browsed, browse } from './browse.ts'
import { type BrowseInput, browseInput, browseParameters } from './browse-input.ts'
import { Declined } from './devtools.ts'
import { launchBrowser } from './launch.ts'

/** Of a machine, and no part of the workspace. */
const FOLDER = '/dev/shm'
const CLEAN_MS = 10_000

/** Opens pages in a browser inside the sandbox of the run. */
export function browseTool(tool: Tool, sandbox: SandboxOfRun): ExposedTool {
  const effect = tool.effect ?? builtInTools.browse.effect
  const deadlineMs = (tool.timeoutSeconds ?? builtInTools.browse.timeoutSeconds) * 1000
  const { rules, decided } = sandbox.egress

  /** By the way that a call of the browser takes: of an encrypted one the method is not visible. */
  const problemOf = (url: URL) => egressProblem(rules, url, url.protocol === 'https:' ? 'CONNECT' : 'GET')

  async function allowed(url: URL): Promise<void> {
    const reason = problemOf(url)
    if (reason === undefined) return
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
    await decided({ allowed: false, method: 'GET', host: url.hostname, port, reason })
    throw new StepFailure('egress_denied', reason)
  }

  async function browsed(room: RunSandbox, folder: string, given: BrowseInput, stop: AbortSignal): Promise<Browsed> {
    const late = new AbortController()
    const why = `the page was not done within ${deadlineMs / 1000} s: ask for less at once, or raise timeoutSeconds of browse`
    const timer = setTimeout(() => late.abort(new StepFailure('limit_time', why)), deadlineMs)
    try {
      const browser = await room.pipe(launchBrowser({ folder, proxyPort: EGRESS_PORT }))
      const signal = AbortSignal.any([stop, late.signal])
      const { writeFile } = room
      return await browse({ browser, allowed, hint: problemOf, writeFile, signal, deadlineMs }, given)
    } catch (error) {
      if (error instanceof Declined) throw new StepFailure('sandbox_failed', `the browser would not: ${error.message}`)
      if (!(error instanceof z.ZodError)) throw error
      throw new StepFailure('sandbox_failed', 'the browser said what no browser says', { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    name: 'browse',
    kind: 'exec',
    family: 'tools',
    needsApproval: tool.needsApproval,
    description:
      'Opens a page in a browser of its own, does the actions in their order, and gives the address, status, title and text that it then has. Nothing stays open between calls. A screenshot is a file of the workspace.',
    parameters: browseParameters,
    effect: () => effect,
    onInterrupted: () => tool.onInterrupted ?? interruptedDefault(effect),
    async call(said, { stepId }, { signal }): Promise<StepResult> {
      const read = browseInput.safeParse(said)
      if (!read.success) {
        const [issue] = read.error.issues
        throw new StepFailure('bad_arguments', `${issue!.path.join('.')}: ${issue!.message}`)
      }
      await allowed(new URL(read.data.url))
      const room = await sandbox.get()
      const folder = `${FOLDER}/browse-${stepId}`
      try {
        const output = await browsed(room, folder, read.data, signal)
        if (read.data.actions.some(({ action }) => action === 'screenshot')) await room.keep()
        return { output: sandbox.withoutSecretsIn(output), ...provenance(room) }
      } finally {
        if (!signal.aborted) {
          await room.run({ argv: ['rm', '-rf', folder] }, { deadlineMs: CLEAN_MS, signal }).catch(() => undefined)
        }
      }
    },
  }
}
