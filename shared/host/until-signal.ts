/**
 * Resolves at the first SIGTERM or SIGINT. A second one means that the person does not want to wait: the process
 * exits at once with 130.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    let seen = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (seen) process.exit(130)
        seen = true
        resolve(signal)
      })
    }
  })
}
