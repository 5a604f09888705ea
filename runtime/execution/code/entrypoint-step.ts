/** The step that is the program itself: open as long as the run, since the program begins again after each wait and each crash. */
export const ENTRYPOINT_STEP = 'entrypoint'
