import { harnessJourney } from '../support/harness-journey.js'

harnessJourney('pi')
