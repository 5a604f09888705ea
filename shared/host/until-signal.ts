import { isatty } from 'node:tty'

/**
 * Resolves at the first SIGTERM or SIGINT, or SIGHUP at a terminal where it has no other use: one that is closed sends it, often twice. Without a
 * terminal SIGHUP asks a service to read its settings again, as systemd does, and who started it with nohup wants it to go on. A second
 * SIGTERM or SIGINT means that the person does not want to wait: the process exits at once with 130. SIGUSR2, which replaces the processes of a service that has several, ends none that has one.
 */
export function untilSignal(atTerminal = [0, 1, 2].some(isatty)): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    let seen = false
    process.on('SIGUSR2', () => {
      if (process.listenerCount('SIGUSR2') > 1) return
      process.stderr.write('SIGUSR2 replaces the processes of a service with --processes; this is one: restart it\n')
    })
    process.on('SIGHUP', () => {
      if (process.listenerCount('SIGHUP') > 1) return
      if (!atTerminal) {
        process.stderr.write(
          'SIGHUP reads a routing config again, and this service has none: restart it to change its settings\n',
        )
        return
      }
      seen = true
      resolve('SIGHUP')
    })
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (seen) process.exit(130)
        seen = true
        resolve(signal)
      })
    }
  })
}
