import { harnessJourney } from '../support/harness-journey.js'

harnessJourney('qwen_code')
