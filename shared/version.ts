/** The version of the package; a test holds it equal to package.json, which the portable parts cannot read. */
export const VERSION = '0.3.0'

/** What package.json says under `engines`; a test holds them equal. */
const OLDEST_NODE = [22, 18] as const

/** What to say where this Node is older than the package takes; undefined where it is not. */
export function tooOldMessage(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return undefined
  return `v${version} is too old: use Node ${OLDEST_NODE.join('.')} or newer`
}

interface NodeProcess {
  versions: { node: string }
  stderr: { write(text: string): unknown }
  exit(code: number): void
}

/** A command under an older Node ends with that sentence, before a module that needs a newer one is loaded. */
export function refuseOldNode(host: NodeProcess): void {
  const says = tooOldMessage(host.versions.node)
  if (says === undefined) return
  host.stderr.write(`Node ${says}.\n`)
  host.exit(2)
}
