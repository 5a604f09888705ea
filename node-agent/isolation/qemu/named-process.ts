import { readdir, readFile } from 'node:fs/promises'

/** Ends machines of this name: those outside our process groups, as when the node is not root. */
export async function killNamed(id: string): Promise<void> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
    const name = words.indexOf('-name')
    if (name === -1 || words[name + 1] !== id) continue
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It ended meanwhile.
    }
  }
}
