import { type ChildProcess, fork } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { IsolationError } from '../driver.ts'
import { type CgroupLimits, createGroup, readBack, removeGroup } from '../oci/cgroups.ts'

const PROGRAMS = {
  'script-process': new URL('./script-process.ts', import.meta.url),
  'wasi-process': new URL('./wasi-process.ts', import.meta.url),
  'quickjs-worker': new URL('./quickjs-worker.ts', import.meta.url),
}

/** The files of this folder as they run: sources, or what the build made of them. */
export const programUrl = (name: keyof typeof PROGRAMS) =>
  import.meta.url.endsWith('.ts') ? PROGRAMS[name] : new URL(PROGRAMS[name].href.replace(/\.ts$/, '.js'))

/** The folders that hold the interpreter's packages, under the name they are asked by and under their real one. */
function packageFolders(): string[] {
  const modules = (() => {
    const entry = createRequire(import.meta.url).resolve('quickjs-emscripten')
    return entry.slice(0, entry.lastIndexOf('/node_modules/') + '/node_modules'.length)
  })()
  return ['quickjs-emscripten', 'quickjs-emscripten-core', '@jitl'].map(name => join(modules, name))
}

export interface Confined {
  id: string
  program: 'script-process' | 'wasi-process'
  args: readonly string[]
  flags: readonly string[]
  stdio: 'ignore' | 'pipe'
  /** Absent without root. */
  cgroup: CgroupLimits | undefined
}

/**
 * A process of Node whose permissions are taken away: no writing, no reading beside its own program, no further
 * process, no addons; and an empty environment. As root it stands in a control group that was read back.
 */
export async function startConfined({ id, program, args, flags, stdio, cgroup }: Confined): Promise<ChildProcess> {
  const own = dirname(fileURLToPath(import.meta.url))
  const readable = [own, realpathSync(own), ...packageFolders()]
  const child = fork(programUrl(program), args, {
    execArgv: ['--permission', ...readable.map(path => `--allow-fs-read=${path}/*`), ...flags, '--no-warnings'],
    env: {},
    serialization: 'advanced',
    stdio: [stdio, stdio, stdio, 'ipc'],
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
