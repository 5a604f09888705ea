import { verifierFiles } from './verifier.gen.ts'

/** What the verifier page runs: its two modules as one script, since a page that was saved has no files beside it. */
export const VERIFIER_SCRIPT = ['verify-receipt.js', 'verifier-form.js']
  .map(name => verifierFiles[name]!.replace(/^import .*$/gm, '').replace(/^export /gm, ''))
  .join('\n')
