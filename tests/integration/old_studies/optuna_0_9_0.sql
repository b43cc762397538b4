BEGIN TRANSACTION;
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	PRIMARY KEY (study_id), 
	CONSTRAINT studydirection CHECK (direction IN ('NOT_SET', 'MINIMIZE', 'MAXIMIZE'))
);
INSERT INTO "studies" VALUES(1,'old','MINIMIZE');
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json VARCHAR(2048), 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json VARCHAR(2048), 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json VARCHAR(2048), 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'lr',1.59658340289402949675e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(2,1,'layers',2.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(3,1,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(4,2,'lr',1.45753487689473805021e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(5,2,'layers',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(6,2,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(7,3,'lr',0.0373067844061019,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(8,3,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(9,3,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(10,4,'lr',3.1793712435622017477e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(11,4,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(12,4,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(13,5,'lr',1.60645591956300144232e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(14,5,'layers',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(15,5,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(16,6,'lr',1.31675459788199764423e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(17,6,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(18,6,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(19,7,'lr',3.94980986766503214258e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(20,7,'layers',2.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(21,7,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(22,8,'lr',5.07013598867023587701e-03,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(23,8,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(24,8,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(25,9,'lr',1.24717538137923855841e-05,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(26,9,'layers',4.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(27,9,'optimizer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(28,10,'lr',1.08895463466481847141e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(29,10,'layers',3.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(30,10,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(31,11,'lr',1.3617592283802473687e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(32,11,'layers',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(33,11,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
INSERT INTO "trial_params" VALUES(34,12,'lr',5.77849671447531109888e-04,'{"name": "LogUniformDistribution", "attributes": {"low": 1e-05, "high": 0.1}}');
INSERT INTO "trial_params" VALUES(35,12,'layers',1.0,'{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 4}}');
INSERT INTO "trial_params" VALUES(36,12,'optimizer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["adam", "sgd"]}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json VARCHAR(2048), 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_system_attributes" VALUES(1,1,'_number','0');
INSERT INTO "trial_system_attributes" VALUES(2,2,'_number','1');
INSERT INTO "trial_system_attributes" VALUES(3,3,'_number','2');
INSERT INTO "trial_system_attributes" VALUES(4,4,'_number','3');
INSERT INTO "trial_system_attributes" VALUES(5,5,'_number','4');
INSERT INTO "trial_system_attributes" VALUES(6,6,'_number','5');
INSERT INTO "trial_system_attributes" VALUES(7,7,'_number','6');
INSERT INTO "trial_system_attributes" VALUES(8,8,'_number','7');
INSERT INTO "trial_system_attributes" VALUES(9,9,'_number','8');
INSERT INTO "trial_system_attributes" VALUES(10,10,'_number','9');
INSERT INTO "trial_system_attributes" VALUES(11,11,'_number','10');
INSERT INTO "trial_system_attributes" VALUES(12,12,'_number','11');
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json VARCHAR(2048), 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	step INTEGER, 
	value FLOAT, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,1.0);
INSERT INTO "trial_values" VALUES(2,1,1,0.5);
INSERT INTO "trial_values" VALUES(3,1,2,3.33333333333333314829e-01);
INSERT INTO "trial_values" VALUES(4,1,3,0.25);
INSERT INTO "trial_values" VALUES(5,1,4,0.2);
INSERT INTO "trial_values" VALUES(6,2,0,2.0);
INSERT INTO "trial_values" VALUES(7,2,1,1.5);
INSERT INTO "trial_values" VALUES(8,2,2,1.33333333333333325931e+00);
INSERT INTO "trial_values" VALUES(9,2,3,1.25);
INSERT INTO "trial_values" VALUES(10,2,4,1.2);
INSERT INTO "trial_values" VALUES(11,3,0,3.0);
INSERT INTO "trial_values" VALUES(12,3,1,2.5);
INSERT INTO "trial_values" VALUES(13,3,2,2.33333333333333348136e+00);
INSERT INTO "trial_values" VALUES(14,3,3,2.25);
INSERT INTO "trial_values" VALUES(15,4,0,4.0);
INSERT INTO "trial_values" VALUES(16,4,1,3.5);
INSERT INTO "trial_values" VALUES(17,4,2,3.33333333333333348136e+00);
INSERT INTO "trial_values" VALUES(18,4,3,3.25);
INSERT INTO "trial_values" VALUES(19,5,0,5.0);
INSERT INTO "trial_values" VALUES(20,5,1,4.5);
INSERT INTO "trial_values" VALUES(21,5,2,4.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(22,5,3,4.25);
INSERT INTO "trial_values" VALUES(23,6,0,6.0);
INSERT INTO "trial_values" VALUES(24,6,1,5.5);
INSERT INTO "trial_values" VALUES(25,6,2,5.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(26,6,3,5.25);
INSERT INTO "trial_values" VALUES(27,7,0,7.0);
INSERT INTO "trial_values" VALUES(28,7,1,6.5);
INSERT INTO "trial_values" VALUES(29,7,2,6.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(30,7,3,6.25);
INSERT INTO "trial_values" VALUES(31,8,0,8.0);
INSERT INTO "trial_values" VALUES(32,8,1,7.5);
INSERT INTO "trial_values" VALUES(33,8,2,7.33333333333333303727e+00);
INSERT INTO "trial_values" VALUES(34,8,3,7.25);
INSERT INTO "trial_values" VALUES(35,9,0,9.0);
INSERT INTO "trial_values" VALUES(36,9,1,8.5);
INSERT INTO "trial_values" VALUES(37,9,2,8.33333333333333392545e+00);
INSERT INTO "trial_values" VALUES(38,9,3,8.25);
INSERT INTO "trial_values" VALUES(39,10,0,10.0);
INSERT INTO "trial_values" VALUES(40,10,1,9.5);
INSERT INTO "trial_values" VALUES(41,10,2,9.33333333333333392545e+00);
INSERT INTO "trial_values" VALUES(42,10,3,9.25);
INSERT INTO "trial_values" VALUES(43,11,0,11.0);
INSERT INTO "trial_values" VALUES(44,11,1,10.5);
INSERT INTO "trial_values" VALUES(45,11,2,1.0333333333333333925e+01);
INSERT INTO "trial_values" VALUES(46,11,3,10.25);
INSERT INTO "trial_values" VALUES(47,12,0,12.0);
INSERT INTO "trial_values" VALUES(48,12,1,11.5);
INSERT INTO "trial_values" VALUES(49,12,2,1.13333333333333339252e+01);
INSERT INTO "trial_values" VALUES(50,12,3,11.25);
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	value FLOAT, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id), 
	CONSTRAINT trialstate CHECK (state IN ('RUNNING', 'COMPLETE', 'PRUNED', 'FAIL'))
);
INSERT INTO "trials" VALUES(1,1,'COMPLETE',0.2,'2026-11-30 05:29:33.812228','2026-11-30 05:29:34.224750');
INSERT INTO "trials" VALUES(2,1,'COMPLETE',1.2,'2026-11-30 05:29:34.269400','2026-11-30 05:29:34.609086');
INSERT INTO "trials" VALUES(3,1,'PRUNED',2.25,'2026-11-30 05:29:34.662854','2026-11-30 05:29:34.960558');
INSERT INTO "trials" VALUES(4,1,'PRUNED',3.25,'2026-11-30 05:29:34.983341','2026-11-30 05:29:35.334449');
INSERT INTO "trials" VALUES(5,1,'PRUNED',4.25,'2026-11-30 05:29:35.347110','2026-11-30 05:29:35.561400');
INSERT INTO "trials" VALUES(6,1,'PRUNED',5.25,'2026-11-30 05:29:35.579338','2026-11-30 05:29:35.797279');
INSERT INTO "trials" VALUES(7,1,'PRUNED',6.25,'2026-11-30 05:29:35.827381','2026-11-30 05:29:36.171825');
INSERT INTO "trials" VALUES(8,1,'PRUNED',7.25,'2026-11-30 05:29:36.191313','2026-11-30 05:29:36.547402');
INSERT INTO "trials" VALUES(9,1,'PRUNED',8.25,'2026-11-30 05:29:36.571344','2026-11-30 05:29:36.959680');
INSERT INTO "trials" VALUES(10,1,'PRUNED',9.25,'2026-11-30 05:29:36.983330','2026-11-30 05:29:37.338120');
INSERT INTO "trials" VALUES(11,1,'PRUNED',10.25,'2026-11-30 05:29:37.366334','2026-11-30 05:29:37.775594');
INSERT INTO "trials" VALUES(12,1,'PRUNED',11.25,'2026-11-30 05:29:37.799402','2026-11-30 05:29:38.156013');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,11,'0.9.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
COMMIT;
