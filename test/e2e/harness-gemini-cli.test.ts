import { harnessJourney } from '../support/harness-journey.js'

harnessJourney('gemini_cli')
