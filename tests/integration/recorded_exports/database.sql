CREATE TABLE "experiments" (
	experiment_id INTEGER NOT NULL, 
	name VARCHAR(256) NOT NULL, 
	artifact_location VARCHAR(256), 
	lifecycle_stage VARCHAR(32), 
	creation_time BIGINT, 
	last_update_time BIGINT, 
	workspace VARCHAR(63) DEFAULT 'default' NOT NULL, 
	CONSTRAINT experiment_pk PRIMARY KEY (experiment_id), 
	CONSTRAINT experiments_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')), 
	CONSTRAINT uq_experiments_workspace_name UNIQUE (workspace, name)
);
INSERT INTO "experiments" VALUES(0,'Default','/tracking/mlruns/0','active',1796029041581,1796029041581,'default');
INSERT INTO "experiments" VALUES(1,'digits','/tracking/mlruns/1','active',1796029041589,1796029041589,'default');
CREATE TABLE "latest_metrics" (
	"key" VARCHAR(250) NOT NULL, 
	value FLOAT NOT NULL, 
	timestamp BIGINT, 
	step BIGINT NOT NULL, 
	is_nan BOOLEAN NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT latest_metric_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid), 
	CHECK (is_nan IN (0, 1))
);
INSERT INTO "latest_metrics" VALUES('val_loss',0.025,1796029041945,3,0,'0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "latest_metrics" VALUES('acc/top1',0.75,1796029041945,3,0,'0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "latest_metrics" VALUES('val_loss',1.79769313486231562234e+308,1796029042158,3,0,'38ee297667954737b337944f4c8622e7');
INSERT INTO "latest_metrics" VALUES('acc/top1',0.75,1796029042158,3,0,'38ee297667954737b337944f4c8622e7');
INSERT INTO "latest_metrics" VALUES('val_loss',0.00025,1796029042254,3,0,'3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "latest_metrics" VALUES('acc/top1',0.75,1796029042254,3,0,'3b51d36642b94e5f9e21104006a8dd4e');
CREATE TABLE "metrics" (
	"key" VARCHAR(250) NOT NULL, 
	value FLOAT NOT NULL, 
	timestamp BIGINT NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	step BIGINT DEFAULT '0' NOT NULL, 
	is_nan BOOLEAN DEFAULT '0' NOT NULL, 
	CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid), 
	CHECK (is_nan IN (0, 1))
);
INSERT INTO "metrics" VALUES('val_loss',0.1,1796029041828,'0502c665a4ec4c069a856773be2e66b8',0,0);
INSERT INTO "metrics" VALUES('acc/top1',0.0,1796029041828,'0502c665a4ec4c069a856773be2e66b8',0,0);
INSERT INTO "metrics" VALUES('val_loss',0.05,1796029041872,'0502c665a4ec4c069a856773be2e66b8',1,0);
INSERT INTO "metrics" VALUES('acc/top1',0.25,1796029041872,'0502c665a4ec4c069a856773be2e66b8',1,0);
INSERT INTO "metrics" VALUES('val_loss',3.33333333333333328707e-02,1796029041925,'0502c665a4ec4c069a856773be2e66b8',2,0);
INSERT INTO "metrics" VALUES('acc/top1',0.5,1796029041925,'0502c665a4ec4c069a856773be2e66b8',2,0);
INSERT INTO "metrics" VALUES('val_loss',0.025,1796029041945,'0502c665a4ec4c069a856773be2e66b8',3,0);
INSERT INTO "metrics" VALUES('acc/top1',0.75,1796029041945,'0502c665a4ec4c069a856773be2e66b8',3,0);
INSERT INTO "metrics" VALUES('val_loss',30.0,1796029042092,'38ee297667954737b337944f4c8622e7',0,0);
INSERT INTO "metrics" VALUES('acc/top1',0.0,1796029042092,'38ee297667954737b337944f4c8622e7',0,0);
INSERT INTO "metrics" VALUES('val_loss',0.0,1796029042119,'38ee297667954737b337944f4c8622e7',1,1);
INSERT INTO "metrics" VALUES('acc/top1',0.25,1796029042119,'38ee297667954737b337944f4c8622e7',1,0);
INSERT INTO "metrics" VALUES('val_loss',1.79769313486231562234e+308,1796029042133,'38ee297667954737b337944f4c8622e7',2,0);
INSERT INTO "metrics" VALUES('acc/top1',0.5,1796029042133,'38ee297667954737b337944f4c8622e7',2,0);
INSERT INTO "metrics" VALUES('val_loss',1.79769313486231562234e+308,1796029042158,'38ee297667954737b337944f4c8622e7',3,0);
INSERT INTO "metrics" VALUES('acc/top1',0.75,1796029042158,'38ee297667954737b337944f4c8622e7',3,0);
INSERT INTO "metrics" VALUES('val_loss',0.001,1796029042210,'3b51d36642b94e5f9e21104006a8dd4e',0,0);
INSERT INTO "metrics" VALUES('acc/top1',0.0,1796029042210,'3b51d36642b94e5f9e21104006a8dd4e',0,0);
INSERT INTO "metrics" VALUES('val_loss',0.0005,1796029042227,'3b51d36642b94e5f9e21104006a8dd4e',1,0);
INSERT INTO "metrics" VALUES('acc/top1',0.25,1796029042227,'3b51d36642b94e5f9e21104006a8dd4e',1,0);
INSERT INTO "metrics" VALUES('val_loss',3.33333333333333322202e-04,1796029042239,'3b51d36642b94e5f9e21104006a8dd4e',2,0);
INSERT INTO "metrics" VALUES('acc/top1',0.5,1796029042239,'3b51d36642b94e5f9e21104006a8dd4e',2,0);
INSERT INTO "metrics" VALUES('val_loss',0.00025,1796029042254,'3b51d36642b94e5f9e21104006a8dd4e',3,0);
INSERT INTO "metrics" VALUES('acc/top1',0.75,1796029042254,'3b51d36642b94e5f9e21104006a8dd4e',3,0);
CREATE TABLE "params" (
	"key" VARCHAR(250) NOT NULL, 
	value VARCHAR(8000) NOT NULL, 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT param_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid)
);
INSERT INTO "params" VALUES('lr','0.1','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "params" VALUES('optimizer','sgd','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "params" VALUES('layers','[8, 8]','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "params" VALUES('lr','30.0','38ee297667954737b337944f4c8622e7');
INSERT INTO "params" VALUES('optimizer','sgd','38ee297667954737b337944f4c8622e7');
INSERT INTO "params" VALUES('layers','[8, 8]','38ee297667954737b337944f4c8622e7');
INSERT INTO "params" VALUES('lr','0.001','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "params" VALUES('optimizer','sgd','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "params" VALUES('layers','[8, 8]','3b51d36642b94e5f9e21104006a8dd4e');
CREATE TABLE "runs" (
	run_uuid VARCHAR(32) NOT NULL, 
	name VARCHAR(250), 
	source_type VARCHAR(20), 
	source_name VARCHAR(500), 
	entry_point_name VARCHAR(50), 
	user_id VARCHAR(256), 
	status VARCHAR(9), 
	start_time BIGINT, 
	end_time BIGINT, 
	source_version VARCHAR(50), 
	lifecycle_stage VARCHAR(20), 
	artifact_uri VARCHAR(200), 
	experiment_id INTEGER, deleted_time BIGINT, 
	CONSTRAINT run_pk PRIMARY KEY (run_uuid), 
	CONSTRAINT source_type CHECK (source_type IN ('NOTEBOOK', 'JOB', 'LOCAL', 'UNKNOWN', 'PROJECT')), 
	CONSTRAINT runs_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')), 
	FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id), 
	CHECK (status IN ('SCHEDULED', 'FAILED', 'FINISHED', 'RUNNING', 'KILLED'))
);
INSERT INTO "runs" VALUES('dccd2bbaf70647fda347c82e55e01655','sweep','UNKNOWN','','','somebody','FINISHED',1796029041687,1796029042305,'','active','/tracking/mlruns/1/dccd2bbaf70647fda347c82e55e01655/artifacts',1,NULL);
INSERT INTO "runs" VALUES('0502c665a4ec4c069a856773be2e66b8','good','UNKNOWN','','','somebody','FINISHED',1796029041741,1796029041985,'','active','/tracking/mlruns/1/0502c665a4ec4c069a856773be2e66b8/artifacts',1,NULL);
INSERT INTO "runs" VALUES('38ee297667954737b337944f4c8622e7','broke','UNKNOWN','','','somebody','FINISHED',1796029042021,1796029042174,'','active','/tracking/mlruns/1/38ee297667954737b337944f4c8622e7/artifacts',1,NULL);
INSERT INTO "runs" VALUES('3b51d36642b94e5f9e21104006a8dd4e','cut','UNKNOWN','','','somebody','KILLED',1796029042186,1796029042293,'','active','/tracking/mlruns/1/3b51d36642b94e5f9e21104006a8dd4e/artifacts',1,NULL);
CREATE TABLE "tags" (
	"key" VARCHAR(250) NOT NULL, 
	value VARCHAR(8000), 
	run_uuid VARCHAR(32) NOT NULL, 
	CONSTRAINT tag_pk PRIMARY KEY ("key", run_uuid), 
	FOREIGN KEY(run_uuid) REFERENCES runs (run_uuid)
);
INSERT INTO "tags" VALUES('mlflow.user','somebody','dccd2bbaf70647fda347c82e55e01655');
INSERT INTO "tags" VALUES('mlflow.source.name','make_mlflow.py','dccd2bbaf70647fda347c82e55e01655');
INSERT INTO "tags" VALUES('mlflow.source.type','LOCAL','dccd2bbaf70647fda347c82e55e01655');
INSERT INTO "tags" VALUES('mlflow.source.git.commit','1e9f3bde4e086d619fb922628d0bb443bf478d3a','dccd2bbaf70647fda347c82e55e01655');
INSERT INTO "tags" VALUES('mlflow.source.git.branch','main','dccd2bbaf70647fda347c82e55e01655');
INSERT INTO "tags" VALUES('mlflow.runName','sweep','dccd2bbaf70647fda347c82e55e01655');
INSERT INTO "tags" VALUES('mlflow.user','somebody','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.source.name','make_mlflow.py','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.source.type','LOCAL','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.source.git.commit','1e9f3bde4e086d619fb922628d0bb443bf478d3a','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.source.git.branch','main','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.parentRunId','dccd2bbaf70647fda347c82e55e01655','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.runName','good','0502c665a4ec4c069a856773be2e66b8');
INSERT INTO "tags" VALUES('mlflow.user','somebody','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.source.name','make_mlflow.py','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.source.type','LOCAL','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.source.git.commit','1e9f3bde4e086d619fb922628d0bb443bf478d3a','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.source.git.branch','main','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.parentRunId','dccd2bbaf70647fda347c82e55e01655','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.runName','broke','38ee297667954737b337944f4c8622e7');
INSERT INTO "tags" VALUES('mlflow.user','somebody','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "tags" VALUES('mlflow.source.name','make_mlflow.py','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "tags" VALUES('mlflow.source.type','LOCAL','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "tags" VALUES('mlflow.source.git.commit','1e9f3bde4e086d619fb922628d0bb443bf478d3a','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "tags" VALUES('mlflow.source.git.branch','main','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "tags" VALUES('mlflow.parentRunId','dccd2bbaf70647fda347c82e55e01655','3b51d36642b94e5f9e21104006a8dd4e');
INSERT INTO "tags" VALUES('mlflow.runName','cut','3b51d36642b94e5f9e21104006a8dd4e');
