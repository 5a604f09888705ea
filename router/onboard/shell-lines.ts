export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export interface ShellLines {
  variables: readonly Variable[]
  /** File that holds the number of the router's process on its first line; without one, the router is not ours to watch. */
  pidFile: string | undefined
}

export interface Variable {
  name: string
  value: string
}

const WHY =
  '# Programs started from this shell reach their models through the router. `router offboard` takes these lines away.'

/**
 * The lines for a start-up file. They set the addresses only while the process that onboard started is alive: after a restart of the
 * machine programs go straight to their providers instead of to a port without a listener.
 */
export function shellLines(shell: Shell, { variables, pidFile }: ShellLines): string[] {
  const fish = shell === 'fish'
  const quote = fish ? quoteFish : quotePosix
  const set = variables.map(({ name, value }) =>
    fish ? `set -gx ${name} ${quote(value)}` : `export ${name}=${quote(value)}`,
  )
  if (pidFile === undefined) return [WHY, ...set]
  const file = quote(pidFile)
  const inside = set.map(line => `  ${line}`)
  if (fish) {
    // fish has no `kill` of its own, and a small system may have none at all.
    const alive = 'begin; kill -0 $waybill_router 2>/dev/null; or test -d "/proc/$waybill_router"; end'
    return [WHY, `if test -r ${file}; and read -l waybill_router <${file}; and ${alive}`, ...inside, 'end']
  }
  const alive = 'kill -0 "$waybill_router" 2>/dev/null'
  return [
    WHY,
    `if [ -r ${file} ] && read -r waybill_router <${file} && ${alive}; then`,
    ...inside,
    'fi',
    'unset waybill_router',
  ]
}

/** Lines of a start-up file that set one of these variables, counted from 1. They are the user's and stay as they are. */
export function linesThatSet(text: string, variables: readonly Variable[]): { name: string; line: number }[] {
  const names = variables.map(({ name }) => name).join('|')
  const sets = new RegExp(`^[^#]*?(?:\\b(?:set|export|typeset|declare)\\b[^#]*\\s|^\\s*)(${names})(?:\\s|=)`)
  return text.split('\n').flatMap((line, index) => {
    const name = sets.exec(line)?.[1]
    return name === undefined ? [] : [{ name, line: index + 1 }]
  })
}

function quotePosix(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function quoteFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
