import { writeFileSync } from 'node:fs'
import { settingsPage } from './settings/page.ts'

/** `npx node scripts/settings.ts`: writes docs/settings.md; run it after a change of a setting, or of the words beside it. */
writeFileSync(new URL('../docs/settings.md', import.meta.url).pathname, settingsPage())
