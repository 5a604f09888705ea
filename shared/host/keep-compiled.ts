import module from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The engine's compiled code is kept for the next start, in the `node_modules/.cache` that the program is installed in: who may write there may
 * change the program as well. Where this account may not, or NODE_DISABLE_COMPILE_CACHE is set, nothing is kept; NODE_COMPILE_CACHE names another folder.
 */
export function keepCompiled(): void {
  // As published, it stands one folder deeper.
  const own = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../..' : '../../..', import.meta.url))
  const above = dirname(own)
  const modules = basename(above) === 'node_modules' ? above : join(own, 'node_modules')
  // Deno has none.
  module.enableCompileCache?.(join(modules, '.cache/waybill/compiled'))
}
