import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

/** Imported before a program: writes the addresses of all that its main thread has loaded into a file, when it ends. */
const loaded = new Set<string>()
registerHooks({
  load(url, context, next) {
    loaded.add(url)
    return next(url, context)
  },
})
process.on('exit', () => writeFileSync(process.env.LOADED_MODULES!, JSON.stringify([...loaded])))
