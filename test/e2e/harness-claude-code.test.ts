import { harnessJourney } from '../support/harness-journey.js'

harnessJourney('claude_code')
