import { type ChildProcess, fork } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { IsolationError } from '../driver.ts'
import { type CgroupLimits, createGroup, readBack, removeGroup } from '../oci/cgroups.ts'

const PROGRAMS = {
  'program-process': new URL('./program-process.ts', import.meta.url),
  'quickjs-worker': new URL('./quickjs-worker.ts', import.meta.url),
  'wasi-worker': new URL('./wasi-worker.ts', import.meta.url),
}
export type ProgramFile = keyof typeof PROGRAMS

/** The files of this folder as they run: sources, or what the build made of them. */
export const programUrl = (name: ProgramFile) =>
  import.meta.url.endsWith('.ts') ? PROGRAMS[name] : new URL(PROGRAMS[name].href.replace(/\.ts$/, '.js'))

/** The folders that hold the interpreter's packages, under the name they are asked by and under their real one. */
function packageFolders(): string[] {
  const modules = (() => {
    const entry = createRequire(import.meta.url).resolve('quickjs-emscripten-core')
    return entry.slice(0, entry.lastIndexOf('/node_modules/') + '/node_modules'.length)
  })()
  return ['quickjs-emscripten-core', '@jitl', '@bjorn3/browser_wasi_shim'].map(name => join(modules, name))
}

export interface Confined {
  id: string
  /** Of `program-process`: the file of its worker, and the worker's heap in megabytes. */
  args: readonly string[]
  /** Absent without root. */
  cgroup: CgroupLimits | undefined
}

/**
 * A process of Node whose permissions are taken away: no writing, no reading beside its own program, no further
 * process, no addons; and an empty environment. As root it stands in a control group that was read back.
 */
export async function startConfined({ id, args, cgroup }: Confined): Promise<ChildProcess> {
  const own = dirname(fileURLToPath(import.meta.url))
  const readable = [own, realpathSync(own), ...packageFolders()]
  const child = fork(programUrl('program-process'), args, {
    execArgv: ['--permission', ...readable.map(path => `--allow-fs-read=${path}/*`), '--allow-worker', '--no-warnings'],
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    detached: true,
  })
  if (cgroup !== undefined && child.pid !== undefined) {
    try {
      await createGroup(id, cgroup, child.pid)
      const found = await readBack(child.pid, id, cgroup)
      if (typeof found === 'string')
        throw new IsolationError('limits_not_in_force', `Nothing was run under wasm: ${found}.`)
    } catch (error) {
      child.kill('SIGKILL')
      await removeGroup(id)
      throw error
    }
  }
  return child
}
