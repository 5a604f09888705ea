import { rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import { StepFailure } from '../runtime/execution/failure.ts'
import {
  type Command,
  type CommandEnd,
  EGRESS_PORT,
  type RunSandbox,
  type SandboxFor,
  type SandboxPipe,
} from '../runtime/execution/sandbox/sandboxes.ts'
import { makeFolder } from '../shared/host/make-folder.ts'
import { putInPlace } from '../shared/host/operator-file.ts'
import { closedFolders } from './closed-folders.ts'
import { byteQueue } from './isolation/byte-queue.ts'
import { type Exec, type Exit, IsolationError, type Sandbox } from './isolation/driver.ts'
import { tarEntries } from './tar-entries.ts'
import { readWorkspace, writeWorkspace } from './workspace-file.ts'

const KEEP_MS = 60_000
/** In which memory is given to files. */
const PAGE = 4096
/** A model is not helped by more, and has to pay for it. */
const OUTPUT_BYTES = 128 * 1024
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/bin'
/** Gives folders their modes, which it reads in pairs of mode and path. */
const CLOSE_EACH = 'cd /work && while [ $# -gt 1 ]; do chmod "$1" "$2" || exit 1; shift 2; done'
const CLOSE = ['xargs', '-0', '-n', '200', 'sh', '-c', CLOSE_EACH, 'sh'] as const
/** Of a program that is spoken with for as long as its run lasts. */
const PIPE_BYTES = 1024 * 1024 * 1024
/** Longest that a timer of Node waits. */
const LONGEST_MS = 2 ** 31 - 1

/** Both spellings are in use. Without rules nothing listens, and there is no way out. */
function proxyVariables({ rules }: SandboxFor['egress']): Record<string, string> {
  if (rules.length === 0) return {}
  const proxy = `http://127.0.0.1:${EGRESS_PORT}`
  const own = 'localhost,127.0.0.1'
  return { http_proxy: proxy, HTTP_PROXY: proxy, https_proxy: proxy, HTTPS_PROXY: proxy, no_proxy: own, NO_PROXY: own }
}

/** The workspace as it was kept, else the files of the manifest. */
export async function prepareWorkspace(sandbox: Sandbox, run: SandboxFor, tar: string): Promise<void> {
  if (await stat(tar).catch(() => undefined)) {
    if (sandbox.archive) return asStep(sandbox.archive.unpack(readWorkspace(tar, run.fileKeys)))
    const folders = closedFolders()
    const bounds = { deadlineMs: KEEP_MS, outputBytes: OUTPUT_BYTES }
    const failure = 'the workspace could not be brought back'
    const stdin = folders.open(readWorkspace(tar, run.fileKeys))
    await done(await sandbox.exec({ argv: ['tar', '-xf', '-', '-C', '/work'], stdin, ...bounds }), failure)
    const modes = folders.modes()
    if (modes.length > 0) await done(await sandbox.exec({ argv: CLOSE, stdin: modes, ...bounds }), failure)
    return
  }
  for (const { path, content, encoding, executable } of run.files) {
    const bytes = Buffer.from(content, encoding === 'base64' ? 'base64' : 'utf8')
    await asStep(sandbox.writeFile(path, bytes, { ...(executable !== undefined && { executable }) }))
  }
}

async function runCommand(
  sandbox: Sandbox,
  variables: Record<string, string>,
  { argv, cwd, stdin, env: own }: Command,
  bounds: Parameters<RunSandbox['run']>[1],
): Promise<CommandEnd> {
  const started = await asStep(
    sandbox.exec({
      argv,
      env: { ...variables, ...own },
      deadlineMs: bounds.deadlineMs,
      outputBytes: bounds.outputBytes ?? OUTPUT_BYTES,
      ...(cwd !== undefined && { cwd }),
      ...(stdin !== undefined && { stdin: Buffer.from(stdin) }),
    }),
  )
  const kill = () => started.signal('SIGKILL')
  bounds.signal.addEventListener('abort', kill, { once: true })
  if (bounds.signal.aborted) kill()
  try {
    const [stdout, stderr, exit] = await Promise.all([textOf(started.stdout), textOf(started.stderr), started.exit])
    bounds.signal.throwIfAborted()
    switch (exit.kind) {
      case 'code':
        return { stdout, stderr, exitCode: exit.code }
      case 'signal':
        return { stdout, stderr, signal: exit.signal }
      case 'limit':
        return {
          stdout,
          stderr,
          limit: { name: exit.limit, detail: exit.detail },
          ...(exit.limit === 'output' && { truncated: true }),
        }
      case 'lost':
        throw new StepFailure('sandbox_lost', `the sandbox ended under the command: ${exit.detail}`)
    }
  } finally {
    bounds.signal.removeEventListener('abort', kill)
  }
}

/** Packs the workspace into its file, whole or not at all; it is on the disk before the result that implies it is. */
async function keepWorkspace(sandbox: Sandbox, tar: string, { fileKeys, limits }: SandboxFor): Promise<void> {
  await makeFolder(join(tar, '..'), 0o700)
  const next = `${tar}.next`
  if (sandbox.archive) {
    await writeWorkspace(next, sandbox.archive.pack(), fileKeys)
    return putInPlace(next, tar)
  }
  const packed = await asStep(
    sandbox.exec({
      argv: ['tar', '-cf', '-', '-C', '/work', '.'],
      deadlineMs: KEEP_MS,
      // Headers and padding on top of what the workspace may hold; more than that is no longer read.
      outputBytes: (limits.diskMb + 16) * 1024 * 1024,
    }),
  )
  const failure = 'the workspace could not be kept'
  const tooLarge = `it is more than ${limits.diskMb} MB, as files with holes count with their whole size and each file with its name`
  const ended = done(packed, failure, exit =>
    exit.kind === 'limit' && exit.limit === 'output' ? tooLarge : exitWords(exit),
  )
  // The next sandbox has no holes where this one has.
  let bytes = 0
  const files = tarEntries(packed.stdout, entry => {
    if (entry.type !== '5' && entry.type !== 'L') bytes += Math.ceil(entry.bytes / PAGE) * PAGE
    if (bytes > limits.diskMb * 1024 * 1024) throw new StepFailure('sandbox_failed', `${failure}: ${tooLarge}`)
    return undefined
  })
  try {
    await Promise.all([writeWorkspace(next, files, fileKeys), ended])
  } catch (error) {
    packed.signal('SIGKILL')
    await rm(next, { force: true })
    throw error
  }
  await putInPlace(next, tar)
}

/** Waits for a program of the image, and says as it does why it failed. */
async function done({ stderr, exit }: Pick<Exec, 'stderr' | 'exit'>, failure: string, how = exitWords): Promise<void> {
  const [said, end] = await Promise.all([lastWords(stderr), exit])
  if (end.kind === 'code' && end.code === 0) return
  throw new StepFailure('sandbox_failed', `${failure}: ${how(end)}${said === '' ? '' : `: ${said}`}`)
}

async function openPipe(
  sandbox: Sandbox,
  variables: Record<string, string>,
  timeoutSeconds: number,
  argv: Command['argv'],
): Promise<SandboxPipe> {
  const input = byteQueue()
  const started = await asStep(
    sandbox.exec({
      argv,
      env: variables,
      stdin: input.chunks,
      outputBytes: PIPE_BYTES,
      deadlineMs: Math.min(timeoutSeconds * 1000, LONGEST_MS),
    }),
  )
  const words = lastWords(started.stderr)
  return {
    stdout: started.stdout,
    write: input.push,
    get unread() {
      return input.length
    },
    ended: Promise.all([started.exit, words]).then(([exit, said]) =>
      said === '' ? exitWords(exit) : `${exitWords(exit)}: ${said}`,
    ),
    kill() {
      input.end()
      started.signal('SIGKILL')
    },
  }
}

interface RunSandboxParts {
  tar: string
  close: () => Promise<void>
  registries: Record<string, string>
  reached: RunSandbox['reached']
}

/** A sandbox as the engine uses it: commands, pipes and files of one run, and its workspace kept. */
export function runSandbox(
  sandbox: Sandbox,
  of: SandboxFor,
  { tar, close, registries, reached }: RunSandboxParts,
): RunSandbox {
  const { offered, env, limits, runId, egress } = of
  const variables = {
    PATH,
    PYTHONPATH: '/usr/lib/waybill:/work/.python',
    HOME: '/work',
    WAYBILL_RUN_ID: runId,
    ...proxyVariables(egress),
    ...registries,
    ...env,
  }

  let keeping: Promise<void> = Promise.resolve()
  return {
    offered,
    kernelRelease: sandbox.kernelRelease,
    run: (command, bounds) => runCommand(sandbox, variables, command, bounds),
    pipe: argv => openPipe(sandbox, variables, limits.timeoutSeconds, argv),
    serve: (port, answer) => asStep(sandbox.serve(port, httpOver(answer))),
    writeFile: (path, content) => asStep(sandbox.writeFile(path, content)),
    readFile: (path, maxBytes) => asStep(sandbox.readFile(path, maxBytes)),
    listFiles: path => asStep(sandbox.listFiles(path)),
    reached,
    // One after another: they write to one place.
    keep() {
      keeping = keeping.catch(() => undefined).then(() => keepWorkspace(sandbox, tar, of))
      return keeping
    },
    close,
  }
}

/** A refusal of the backend reaches the model as the failure of its call. */
export async function asStep<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof IsolationError)) throw error
    throw new StepFailure(error.limit ? `limit_${error.limit}` : error.code, error.message, { cause: error })
  }
}

const LAST_WORDS = 500

/** The end of what a program says beside its messages, so that its failure can be told. */
async function lastWords(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) text = (text + decoder.decode(chunk, { stream: true })).slice(-LAST_WORDS)
  return text.trim()
}

/** All that a program says. */
async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}

/** How a command ended, in words. */
export function exitWords(exit: Exit): string {
  switch (exit.kind) {
    case 'code':
      return `exit code ${exit.code}`
    case 'signal':
      return exit.signal
    case 'limit':
      return `${exit.limit}: ${exit.detail}`
    case 'lost':
      return exit.detail
  }
}

/** Reads HTTP from connections of a guest. Whatever it sends, the parser is Node's, and the worst it gets is a 400. */
function httpOver(answer: (request: Request) => Promise<Response>): (stream: Duplex) => void {
  const server = createServer({ maxHeaderSize: 8192 }, getRequestListener(answer, { overrideGlobalObjects: false }))
  return stream => void server.emit('connection', stream)
}
