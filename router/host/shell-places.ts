import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { homedir, userInfo } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { SHELLS, type Shell } from '../onboard/shell-lines.ts'

type Vars = Readonly<Record<string, string | undefined>>

/** The shell of this account by the name of its program; undefined for one that we cannot write lines for. */
export function detectShell(vars: Vars): { path: string; shell: Shell | undefined } {
  const path = vars.SHELL || userInfo().shell || ''
  return { path, shell: SHELLS.find(name => name === basename(path)) }
}

/** The file that each interactive shell reads when it starts. */
export function startUpPath(shell: Shell, vars: Vars): string {
  const home = vars.HOME || homedir()
  switch (shell) {
    case 'bash':
      // Terminals of macOS open login shells, which read no .bashrc.
      return join(home, process.platform === 'darwin' ? '.bash_profile' : '.bashrc')
    case 'zsh':
      return join(vars.ZDOTDIR || home, '.zshrc')
    case 'fish':
      return join(vars.XDG_CONFIG_HOME || join(home, '.config'), 'fish', 'config.fish')
  }
}

/** Every file that onboard may have written to, also under settings that have changed since. */
export function allStartUpPaths(vars: Vars): string[] {
  const { ZDOTDIR: _, XDG_CONFIG_HOME: __, ...plain } = vars
  return [...new Set(SHELLS.flatMap(shell => [startUpPath(shell, vars), startUpPath(shell, plain)]))]
}

/** Where a program is found, as a shell would. */
export async function findProgram(name: string, vars: Vars): Promise<string | undefined> {
  for (const folder of (vars.PATH ?? '').split(delimiter)) {
    if (folder === '') continue
    const path = join(folder, name)
    const runs = await access(path, constants.X_OK).then(
      async () => (await stat(path)).isFile(),
      () => false,
    )
    if (runs) return path
  }
  return undefined
}
