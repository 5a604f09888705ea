/** Names take room as well, on the node too. */
export const MAX_FILES = 10_000
export const MAX_PATH_CHARACTERS = 1024
/** No path of the step protocol is as long. */
export const MAX_CALL_PATH = 1000
