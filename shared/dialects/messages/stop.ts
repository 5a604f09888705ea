/** Stop reasons at which the last block may be unfinished. */
export const CUT_SHORT: ReadonlySet<string> = new Set(['max_tokens', 'model_context_window_exceeded', 'refusal'])
