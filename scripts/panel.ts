import { writeFileSync } from 'node:fs'
import { browserFilesModule } from './panel/browser-files.ts'

/** `npx node scripts/panel.ts`: writes the texts that the router serves as its panel; run it after a change in router/panel/browser/. */
const root = new URL('..', import.meta.url).pathname
writeFileSync(`${root}router/panel/files.gen.ts`, browserFilesModule())
