import { writeFileSync } from 'node:fs'
import { clientOperations } from './client/client-operations.ts'
import { BROWSER_PARTS, browserFilesModule } from './panel/browser-files.ts'
import { typefaceModule } from './panel/typeface.ts'

/** `npm run generate`: writes the modules that are made from other sources and stand in no commit. `npm ci` and `npm run build` run it; run it after a change in a browser/ folder or of an endpoint. */
const root = new URL('..', import.meta.url).pathname
const modules: Record<string, string> = {
  'shared/client/operations.gen.ts': clientOperations(),
  'shared/browser/typeface.gen.ts': typefaceModule(),
}
for (const [path, part] of Object.entries(BROWSER_PARTS)) modules[path] = browserFilesModule(part)
for (const [path, text] of Object.entries(modules)) writeFileSync(root + path, text)
