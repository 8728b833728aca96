// Terminal colours. They are on or off by parameter, never by looking at the environment.

import pico from 'picocolors'

export const createColors = (enabled: boolean) => pico.createColors(enabled)
