// Every event that can be logged, as one table: `key: 'noun-verb'`. A log line names an event from here and nothing else,
// so that an operator can list what there is to look for. Add yours under a heading of your own.

export const EVENTS = {
  // actors/system
  actorStart: 'actor-start',
  actorStop: 'actor-stop',
  actorCrash: 'actor-crash',
  actorRestart: 'actor-restart',
  actorEscalate: 'actor-escalate',
  actorDeadlineMiss: 'actor-deadline-miss',
  effectTeardownFail: 'effect-teardown-fail',
  signalFail: 'signal-fail',
  watchCallbackFail: 'watch-callback-fail',
  deadLetterCount: 'dead-letter-count',
  systemFail: 'system-fail',
  systemStop: 'system-stop',
  linkOpen: 'link-open',
  linkEnd: 'link-end',
  linkSendFail: 'link-send-fail',
  linkReceiveFail: 'link-receive-fail',

  // actors/threads
  threadStart: 'thread-start',
  threadExit: 'thread-exit',
  threadDeath: 'thread-death',
  threadRestart: 'thread-restart',
  threadStartFail: 'thread-start-fail',
  threadDrainFail: 'thread-drain-fail',
  threadAttachFail: 'thread-attach-fail',

  // actors/rollout, callback, control, service
  rolloutEffectFail: 'rollout-effect-fail',
  resultWriteFail: 'result-write-fail',
  resultReadFail: 'result-read-fail',
  storeWait: 'store-wait',
  serviceRecover: 'service-recover',
  callbackAttemptFail: 'callback-attempt-fail',
  callbackGiveUp: 'callback-give-up',
  controlListen: 'control-listen',
  controlRequestFail: 'control-request-fail',
  serviceReady: 'service-ready',
  serviceDrain: 'service-drain',
  serviceStop: 'service-stop',

  // actors/inference
  pauseExpire: 'pause-expire',

  // actors/session, actors/stages, actors/reaper
  sessionCloseFail: 'session-close-fail',
  sessionEnd: 'session-end',
  poolTaskCrash: 'pool-task-crash',
  poolTaskForce: 'pool-task-force',
  poolThreadDeath: 'pool-thread-death',
  poolThreadKill: 'pool-thread-kill',
  teardownFail: 'teardown-fail',
  leftoversRemove: 'leftovers-remove',
  leftoversFail: 'leftovers-fail',

  // actors/prober
  upstreamProbe: 'upstream-probe',
  upstreamProbeFail: 'upstream-probe-fail',

  // actors/proxy, actors/merge
  gatewayListen: 'gateway-listen',
  exchangeCrash: 'exchange-crash',
  callFail: 'call-fail',
  upstreamLose: 'upstream-lose',
  frameRefuse: 'frame-refuse',
  frameLose: 'frame-lose',
  frameMalformed: 'frame-malformed',
  captureLinkEnd: 'capture-link-end',
  storeBlock: 'store-block',
  storeResume: 'store-resume',
  storeDrop: 'store-drop',
  storeFinishFail: 'store-finish-fail',
  storeRestoreFail: 'store-restore-fail',
} as const

export type EventName = (typeof EVENTS)[keyof typeof EVENTS]
