import { rolldown } from 'rolldown'

/** One file of plain JavaScript for a WinterCG host: no Node built-in may be left in it. */
export async function bundleWorker(entry: string): Promise<string> {
  const bundle = await rolldown({
    input: entry,
    platform: 'browser',
    onLog(level, log, next) {
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message)
      next(level, log)
    },
  })
  try {
    const { output } = await bundle.generate({ format: 'es', codeSplitting: false })
    return output[0].code
  } finally {
    await bundle.close()
  }
}
