import { verifierFiles } from './verifier.gen.ts'

/**
 * What the verifier page runs: its modules as one script, since a page that was saved has no files beside it. In a strict block two modules
 * with one name are refused.
 */
export const VERIFIER_SCRIPT = `'use strict';{${Object.entries(verifierFiles)
  // The form begins to act as it is read.
  .sort(([a], [b]) => Number(a === 'verifier-form.js') - Number(b === 'verifier-form.js'))
  .map(([, text]) => text.replace(/^import [^']* from '[^']*'$/gm, '').replace(/^export /gm, ''))
  .join('\n')}}`
