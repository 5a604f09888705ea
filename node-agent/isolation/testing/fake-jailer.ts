import { spawn } from 'node:child_process'
import { copyFileSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { makeFolder } from '../../../shared/host/make-folder.ts'
import { fakeFirecracker } from './fake-firecracker.ts'

/**
 * A program in place of Firecracker's jailer: it takes the options that the real one takes, and follows links as it does. With
 * a new pid namespace the real one ends as soon as the machine's process runs, which inherits its output; so does this.
 */
const [behaviour, ...args] = process.argv.slice(2)
const fail = (reason: string): never => {
  process.stderr.write(`Error: ${reason}\n`)
  process.exit(1)
}

if (args[0] === '--machine') {
  const root = args[1]!
  process.chdir(root)
  await fakeFirecracker('.', {
    lateReset: behaviour === 'late-reset',
    panics: behaviour === 'panics',
    exit(words) {
      process.stdout.write(`${words}\n`)
      process.exit(1)
    },
  })
} else {
  if (behaviour === 'fails') fail('Invalid gid')
  const FLAGS = ['--new-pid-ns', '--daemonize']
  const VALUES = ['--id', '--exec-file', '--uid', '--gid', '--cgroup-version', '--parent-cgroup', '--chroot-base-dir']
  const given = new Map<string, string>()
  const end = args.indexOf('--')
  for (let at = 0; at < end; at++) {
    const name = args[at]!
    if (VALUES.includes(name)) given.set(name, args[++at]!)
    else if (!FLAGS.includes(name)) fail(`Found argument '${name}' which wasn't expected`)
  }
  const program = realpathSync(given.get('--exec-file')!)
  if (!basename(program).includes('firecracker')) fail(`Invalid exec file name: ${basename(program)}`)
  const root = join(given.get('--chroot-base-dir')!, basename(program), given.get('--id')!, 'root')
  await makeFolder(root)
  copyFileSync(program, join(root, basename(program)))
  const machine = [import.meta.filename, behaviour!, '--machine', root]
  spawn(process.execPath, machine, { detached: true, stdio: ['ignore', 'inherit', 'inherit'] }).unref()
}
