import { writeFileSync } from 'node:fs'
import { BROWSER_PARTS, browserFilesModule } from './panel/browser-files.ts'

/** `npx node scripts/panel.ts`: writes the texts that the services serve to browsers; run it after a change in a browser/ folder. */
const root = new URL('..', import.meta.url).pathname
for (const [path, part] of Object.entries(BROWSER_PARTS)) writeFileSync(root + path, browserFilesModule(part))
