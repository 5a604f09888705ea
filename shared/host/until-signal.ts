/**
 * Resolves at the first SIGTERM or SIGINT. A second one means that the person does not want to wait: the process
 * exits at once with 130. SIGUSR2, which replaces the processes of a service that has several, ends none that has one.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    let seen = false
    process.on('SIGUSR2', () => {
      if (process.listenerCount('SIGUSR2') > 1) return
      process.stderr.write('SIGUSR2 replaces the processes of a service with --processes; this is one: restart it\n')
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
